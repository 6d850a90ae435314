"""Client quotas: limits by user, client id and address, stored as the operator gave them (KIP-546)."""

from collections.abc import Iterator
from math import isnan
from typing import TypeAlias

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.wire.messages import ClientQuotaRecord

QuotaEntity: TypeAlias = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; no name is the default for that type."""


class QuotasImage:
    __slots__ = ("by_entity",)

    def __init__(self) -> None:
        self.by_entity: dict[QuotaEntity, dict[str, float]] = {}

    def replay(self, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
        """A limit that is no number is none: Apache Kafka lets operators set it, and holds nobody to it."""
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        delta.quotas.add(entity)
        values = self.by_entity.setdefault(entity, {})
        if record.remove or isnan(record.value):
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.by_entity[entity]

    def records(self) -> Iterator[ClientQuotaRecord]:
        for entity, values in self.by_entity.items():
            for key, value in values.items():
                yield quota_record(entity, key, value)

    def copy(self) -> "QuotasImage":
        copied = QuotasImage()
        copied.by_entity = {entity: dict(values) for entity, values in self.by_entity.items()}
        return copied


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """Sets a quota, or with no value removes it."""
    parts = [
        ClientQuotaRecord.EntityData(entity_type=type, entity_name=name)
        for type, name in sorted(entity, key=lambda part: part[0])
    ]
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)
