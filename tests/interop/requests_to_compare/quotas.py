"""Client quotas, set and found again."""

from typing import Any

from ottla.wire.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest
from tests.interop.compared_nodes import Step, ask

PLENTY = 1_000_000_000.0
"""Kafka does hold clients to their quotas: these must not slow the scenes that follow."""

EXACTLY, DEFAULT, ANY = 0, 1, 2
USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, str | None], ...]


def quota(entity: Entity, **quotas: float | None) -> AlterClientQuotasRequest.EntryData:
    return AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type=type, entity_name=name) for type, name in entity],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )


def limit(*entries: AlterClientQuotasRequest.EntryData, **fields: Any) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), **fields)


def find(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    parts = [
        DescribeClientQuotasRequest.ComponentData(entity_type=type, match_type=how, match=name)
        for type, how, name in components
    ]
    return DescribeClientQuotasRequest(components=parts, strict=strict)


def quotas() -> list[Step]:
    user: Entity = ((USER, "u"),)
    refused = [
        quota(user, nobody=1000.0),
        quota((), producer_byte_rate=1.0),
        quota((("zz", "u"),), producer_byte_rate=1.0),
        quota(((USER, ""),), producer_byte_rate=1.0),
        quota(user, producer_byte_rate=-1.0),
        quota(user, producer_byte_rate=1.5),
        quota(user, connection_creation_rate=1.0),
        quota(((IP, "1.2.3.4"), (USER, "u")), connection_creation_rate=1.0),
        quota(((IP, "1.2.3.4"),), producer_byte_rate=1.0),
        quota(((IP, "nobody.invalid"),), connection_creation_rate=1.0),
    ]
    filters: list[tuple[tuple[str, int, str | None], ...]] = [
        (),
        ((USER, EXACTLY, "u"),),
        ((USER, DEFAULT, None),),
        ((USER, ANY, None),),
        ((USER, EXACTLY, "u"), (CLIENT_ID, ANY, None)),
        (("zz", EXACTLY, "u"),),
        ((USER, 5, "u"),),
        ((USER, EXACTLY, None),),
        (("", EXACTLY, "u"),),
        ((IP, ANY, None), (USER, ANY, None)),
    ]
    return [
        *ask(
            limit(
                quota(user, producer_byte_rate=PLENTY),
                quota(((USER, None),), consumer_byte_rate=PLENTY),
                quota(((USER, "u"), (CLIENT_ID, "c")), request_percentage=PLENTY),
                quota(((IP, "127.0.0.1"),), connection_creation_rate=PLENTY),
                quota(((IP, "localhost"),), connection_creation_rate=PLENTY),
            ),
            1,
        ),
        *(step for entry in refused for step in ask(limit(entry), 0, 1)),
        *ask(limit(quota(user, producer_byte_rate=PLENTY + 1), quota(user, producer_byte_rate=PLENTY + 2)), 1),
        *ask(limit(quota(user, producer_byte_rate=PLENTY + 1), validate_only=True), 1),
        *(step for given in filters for step in (*ask(find(*given), 0, 1), *ask(find(*given, strict=True), 1))),
        *ask(limit(quota(user, producer_byte_rate=None)), 1),
        *ask(find(), 1),
    ]
