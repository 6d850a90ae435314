"""Batches that may take long to check, looked at before anything of their request is appended.

Most batches are checked in a microsecond or two where they are appended. One that has to be decompressed, or converted
to the topic's codec, can take tens of milliseconds, and kilobytes can expand to a hundred megabytes: the loop does not
have that time. So such batches are tried first with a small limit; what is too large for that, or known to be, goes to
a worker. Meanwhile the connection is paused: the requests behind it must not overtake this one.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ottla.base.lent import Seen, keep
from ottla.broker.partitions.held_partitions import Partitions
from ottla.records.compression import DEFAULT_LIMIT
from ottla.records.header import ATTRIBUTES_POSITION, COMPRESSION_MASK, Compression
from ottla.records.validate import (
    MAX_PLAIN_BYTES,
    InvalidBatch,
    ProduceRules,
    RecordError,
    Validated,
    validate_produced,
)
from ottla.runtime.request import ClientConnection
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest


class Refusal(NamedTuple):
    """Why a batch is not taken. The exception itself would keep its frames, and with them all that was decompressed."""

    error: ErrorCode
    message: str
    record_errors: tuple[RecordError, ...]
    is_bomb: bool


Outcome: TypeAlias = Validated | Refusal
Outcomes: TypeAlias = dict[int, Outcome]
"""By the identity of the request's `PartitionProduceData`."""

_CODEC_POSITION = ATTRIBUTES_POSITION + 1
_MAX_CONVERTED_BYTES = 16 << 10
_MAX_COMPRESSED_BYTES = 64 << 10
_MAX_EXPANDED_BYTES = 1 << 20
# So that batches which expand to the limit take its memory once, however many come.
_ONE_AT_A_TIME = "batch checks"


class _Suspect(NamedTuple):
    data: ProduceRequest.PartitionProduceData
    rules: ProduceRules


def codec_of(records: Seen) -> int:
    """The number of the codec that a batch says it is compressed with."""
    return records[_CODEC_POSITION] & COMPRESSION_MASK if len(records) > _CODEC_POSITION else 0


def check_ahead(
    partitions: Partitions,
    world: World,
    client: ClientConnection,
    request: ProduceRequest,
    name_of: Callable[[ProduceRequest.TopicProduceData], str | None],
    then: Callable[[Outcomes], None],
) -> None:
    """Calls back with the outcomes of the batches that take long, at once if none takes very long."""
    now_ms = world.clock.now_ms()
    outcomes: Outcomes = {}
    heavy: list[_Suspect] = []
    for suspect in _suspects(partitions, request, name_of):
        outcome = None if _is_heavy(suspect) else _check_small(suspect, now_ms)
        if outcome is None:
            heavy.append(suspect)
        else:
            outcomes[id(suspect.data)] = outcome
    if not heavy:
        then(outcomes)
        return

    def check_all() -> Outcomes:
        return {id(suspect.data): _check(suspect, now_ms) for suspect in heavy}

    def checked(found: Outcomes) -> None:
        # What comes next may have to wait for the transaction's coordinator, and keeps the connection paused then.
        client.resume_with(lambda: then(outcomes | found))

    keep_records(request)
    client.pause()
    world.workers.run(check_all, checked, key=_ONE_AT_A_TIME)


def keep_records(request: ProduceRequest) -> None:
    """Copies the records, which are only lent until the request's handler returns (`ottla.base.lent`).

    What was found out about them before still holds: it is numbers (`Validated`), and the copy has every change that
    was made in place.
    """
    for topic in request.topic_data:
        for one in topic.partition_data:
            if one.records is not None and not isinstance(one.records, bytearray):
                one.records = keep(one.records)


def drop_records(request: ProduceRequest) -> None:
    """The records have been appended: a request that waits for its reply keeps none of them in memory."""
    for topic in request.topic_data:
        for one in topic.partition_data:
            one.records = None


def _suspects(
    partitions: Partitions,
    request: ProduceRequest,
    name_of: Callable[[ProduceRequest.TopicProduceData], str | None],
) -> list[_Suspect]:
    """The batches that have to be decompressed or converted, or are very large."""
    found: list[_Suspect] = []
    for topic in request.topic_data:
        name = name_of(topic)
        for one in topic.partition_data:
            partition = partitions.get((name or "", one.index))
            records = one.records
            if partition is None or partition.state is None or not records:
                continue
            rules = partition.settings.rules
            if codec_of(records) or rules.compression or len(records) > MAX_PLAIN_BYTES:
                found.append(_Suspect(one, rules))
    return found


def _is_heavy(suspect: _Suspect) -> bool:
    records = suspect.data.records or b""
    if len(records) > suspect.rules.max_message_bytes:
        return False  # It is refused for its size, and not looked into.
    is_to_be_compressed = suspect.rules.compression not in (None, Compression.NONE, codec_of(records))
    return len(records) > (_MAX_CONVERTED_BYTES if is_to_be_compressed else _MAX_COMPRESSED_BYTES)


def _check_small(suspect: _Suspect, now_ms: int) -> Outcome | None:
    """None if it expands to more than we have time for."""
    outcome = _check(suspect, now_ms, _MAX_EXPANDED_BYTES)
    return None if isinstance(outcome, Refusal) and outcome.is_bomb else outcome


def _check(suspect: _Suspect, now_ms: int, limit: int = DEFAULT_LIMIT) -> Outcome:
    return check(suspect.data.records or b"", suspect.rules, now_ms, limit)


def check(records: Seen, rules: ProduceRules, now_ms: int, limit: int = DEFAULT_LIMIT) -> Outcome:
    try:
        return validate_produced(records, rules, now_ms, limit)
    except InvalidBatch as refused:
        return Refusal(ErrorCode[refused.error], str(refused), refused.record_errors, refused.is_bomb)
