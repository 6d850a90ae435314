"""AlterClientQuotas: stored, for the brokers that will limit clients by them (KIP-546)."""

from collections import Counter
from collections.abc import Container

from ottla.config.values import Type
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.image.quotas_image import QuotaEntity, quota_record
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

CLIENT_KEYS = {
    "producer_byte_rate": Type.LONG,
    "consumer_byte_rate": Type.LONG,
    "request_percentage": Type.DOUBLE,
    "controller_mutation_rate": Type.DOUBLE,
}
IP_KEYS = {"connection_creation_rate": Type.INT}
ENTITY_TYPES = ("user", "client-id", "ip")
LARGEST = {Type.INT: 2.0**31 - 1, Type.LONG: 2.0**63}
ALMOST_WHOLE = 1e-6

Entry = AlterClientQuotasRequest.EntryData


def alter_client_quotas(
    context: ControllerContext, request: AlterClientQuotasRequest, unknown_hosts: Container[str] = ()
) -> Decision[AlterClientQuotasResponse]:
    """One answer for each entity, in the order in which they came. Of one that comes twice the first counts, although
    the answer is a refusal, as in Kafka.

    `unknown_hosts` are the names for addresses that do not resolve, which the controller's node has looked up.
    """
    reply = AlterClientQuotasResponse()
    records: list[VersionedRecord] = []
    times = Counter(_entity(entry) for entry in request.entries)
    entries = {_entity(entry): entry for entry in reversed(request.entries)}
    for entity, entry in reversed(entries.items()):
        made = _alter(context, entity, entry, unknown_hosts)
        if not isinstance(made, Refusal):
            records += made
        if times[entity] > 1:
            made = _repeated(entry)
        code, message = made if isinstance(made, Refusal) else (ErrorCode.NONE, None)
        parts = [
            AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ]
        reply.entries.append(AlterClientQuotasResponse.EntryData(error_code=code, error_message=message, entity=parts))
    return Decision(reply, [] if request.validate_only else records)


def _entity(entry: Entry) -> QuotaEntity:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


def _repeated(entry: Entry) -> Refusal:
    parts = ", ".join(f"{part.entity_type}={part.entity_name}" for part in entry.entity)
    return _bad(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})")


def _alter(
    context: ControllerContext, entity: QuotaEntity, entry: Entry, unknown_hosts: Container[str]
) -> list[VersionedRecord] | Refusal:
    keys = _keys_for(entry, unknown_hosts)
    if isinstance(keys, Refusal):
        return keys
    if len({op.key for op in entry.ops}) < len(entry.ops):
        repeated = next(op.key for op in entry.ops if sum(other.key == op.key for other in entry.ops) > 1)
        return _bad(f"Duplicate quota key {repeated}")
    current = context.image.quotas.by_entity.get(entity, {})
    records = []
    for op in entry.ops:
        if op.remove:
            if op.key in current:
                records.append(quota_record(entity, op.key, None))
            continue
        refusal = _check_value(keys, op.key, op.value)
        if refusal is not None:
            return refusal
        if current.get(op.key) != op.value:
            records.append(quota_record(entity, op.key, op.value))
    return [VersionedRecord(record, 0) for record in records]


def _keys_for(entry: Entry, unknown_hosts: Container[str]) -> dict[str, Type] | Refusal:
    """Which quotas an entity can have."""
    types = [part.entity_type for part in entry.entity]
    for part in entry.entity:
        if part.entity_type not in ENTITY_TYPES:
            return _bad(f"Unhandled client quota entity type: {part.entity_type}")
        if types.count(part.entity_type) > 1:
            return _bad(f"Invalid client quota entity, duplicate entity entry {part.entity_type}")
        if part.entity_name == "":
            return _bad(f"Empty {part.entity_type} not supported")
    if not types:
        return _bad("Invalid empty client quota entity")
    if "ip" not in types:
        return CLIENT_KEYS
    if len(types) > 1:
        return _bad("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = entry.entity[0].entity_name
    if address in unknown_hosts:
        return _bad(f"{address} is not a valid IP or resolvable host.")
    return IP_KEYS


def _check_value(keys: dict[str, Type], key: str, value: float) -> Refusal | None:
    if key not in keys:
        return _bad(f"Invalid configuration key {key}")
    if not value > 0.0:  # Nor is it one that is no number, which Apache Kafka takes, and which then limits nobody.
        return _bad(f"Quota {key} must be greater than 0")
    type = keys[key]
    if type is Type.DOUBLE:
        return None
    if value > LARGEST[type]:
        article = "an" if type is Type.INT else "a"
        return _bad(f"Proposed value for {key} is too large for {article} {type.name}.")
    if abs(value % 1.0) > ALMOST_WHOLE:
        return _bad(f"{key} cannot be a fractional value.")
    return None


def _bad(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
