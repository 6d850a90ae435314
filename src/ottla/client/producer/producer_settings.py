"""A producer's settings as it uses them, checked against each other as Kafka's producer does."""

from typing import Any, NamedTuple

from ottla.client.producer.partitioning import Partitioner
from ottla.client.settings import ClientSettings
from ottla.config.parse import ConfigError, Problem
from ottla.records.compression import NAMES
from ottla.records.header import Compression

_MOST_IN_FLIGHT = 5
"""As many batches as a broker remembers of an idempotent producer."""
_INT_MAX = 0x7FFFFFFF
_GROWTH = 16
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


class ProducerSettings(NamedTuple):
    batch_size: int
    most_batch_size: int
    """What a batch may grow to while it could not be sent anyway: the same, if somebody chose `batch.size`."""
    linger_ms: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    codec: int
    level: int | None
    acks: int
    is_idempotent: bool
    retries: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    max_in_flight: int
    ignores_keys: bool
    is_adaptive: bool
    availability_timeout_ms: int
    partitioner: Partitioner | None
    transactional_id: str | None
    transaction_timeout_ms: int
    metadata_max_idle_ms: int


def producer_settings(values: ClientSettings) -> ProducerSettings:
    """Raises `ConfigError` with all that contradicts itself."""
    problems: list[Problem] = []
    codec = NAMES[values.text("compression.type")]
    transactional_id = values.optional_text("transactional.id")
    acks = _ACKS[values.text("acks")]
    partitioner: Any = values.plug_in("partitioner.class")
    if partitioner is not None and not callable(partitioner):
        problems.append(Problem("partitioner.class", str(partitioner), "a callable: see docs/clients/producer.md"))
    settings = ProducerSettings(
        batch_size=values.integer("batch.size"),
        most_batch_size=values.integer("batch.size") * (1 if "batch.size" in values.given else _GROWTH),
        linger_ms=values.integer("linger.ms"),
        buffer_memory=values.integer("buffer.memory"),
        max_block_ms=values.integer("max.block.ms"),
        max_request_size=values.integer("max.request.size"),
        codec=codec,
        level=_level(values, codec),
        acks=acks,
        is_idempotent=_is_idempotent(values, acks, transactional_id, problems),
        retries=values.integer("retries"),
        request_timeout_ms=values.integer("request.timeout.ms"),
        delivery_timeout_ms=_delivery_timeout_ms(values, problems),
        max_in_flight=values.integer("max.in.flight.requests.per.connection"),
        ignores_keys=values.flag("partitioner.ignore.keys"),
        is_adaptive=values.flag("partitioner.adaptive.partitioning.enable"),
        availability_timeout_ms=values.integer("partitioner.availability.timeout.ms"),
        partitioner=partitioner,
        transactional_id=transactional_id,
        transaction_timeout_ms=values.integer("transaction.timeout.ms"),
        metadata_max_idle_ms=values.integer("metadata.max.idle.ms"),
    )
    if problems:
        raise ConfigError(tuple(problems))
    return settings


def _level(values: ClientSettings, codec: Compression) -> int | None:
    key = f"compression.{codec.name.lower()}.level"
    return values.integer(key) if key in values else None


def _is_idempotent(values: ClientSettings, acks: int, transactional_id: str | None, problems: list[Problem]) -> bool:
    """On by default (KIP-679); quietly off when it was not asked for and another setting contradicts it."""
    contradictions = []
    if acks != -1:
        contradictions.append(Problem("acks", values.text("acks"), "all, for an idempotent producer"))
    if values.integer("retries") == 0:
        contradictions.append(Problem("retries", "0", "at least 1, for an idempotent producer"))
    if (in_flight := values.integer("max.in.flight.requests.per.connection")) > _MOST_IN_FLIGHT:
        key = "max.in.flight.requests.per.connection"
        contradictions.append(Problem(key, str(in_flight), f"at most {_MOST_IN_FLIGHT}, for an idempotent producer"))
    is_wanted = values.flag("enable.idempotence")
    if transactional_id is not None and not is_wanted:
        problems.append(Problem("enable.idempotence", "false", "true, for a producer with a transactional.id"))
    if is_wanted and contradictions:
        if transactional_id is None and "enable.idempotence" not in values.given:
            return False
        problems += contradictions
    return is_wanted


def _delivery_timeout_ms(values: ClientSettings, problems: list[Problem]) -> int:
    least_ms = min(values.integer("linger.ms") + values.integer("request.timeout.ms"), _INT_MAX)
    timeout_ms = values.integer("delivery.timeout.ms")
    if timeout_ms >= least_ms:
        return timeout_ms
    if "delivery.timeout.ms" in values.given:
        expected = f"at least linger.ms + request.timeout.ms, which is {least_ms}"
        problems.append(Problem("delivery.timeout.ms", str(timeout_ms), expected))
    return least_ms
