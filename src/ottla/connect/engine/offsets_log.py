"""The offsets topic: where every source is, in Kafka Connect's format. It is the truth.

A record's key is `["NAME",{partition}]` and its value `{offset}`, in JSON; null forgets a partition. The members of the
JSON object may come in any order (Java's do), so partitions are compared by what they say. A partition that is known
is written under the bytes that it was known by: compaction goes by bytes.

Records are read uncommitted, and each counts when the commit marker of its producer is met. Other connectors share the
topic, and a transaction of theirs that hangs must not hide what lies behind it. A start that has fenced its connector's
older ones sees all that they committed: fencing waits for their last marker.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.records import OffsetSpec
from ottla.client.admin.topics import NewTopic
from ottla.client.admin.transaction_states import TransactionState
from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError, OffsetOutOfRange
from ottla.connect.connector import Offset, Partition
from ottla.connect.engine.failures import TakenOver
from ottla.connect.engine.run import Run
from ottla.records.control import parse_end_transaction_marker
from ottla.records.reader import read_records
from ottla.spark.sink.cluster_access import ClusterAccess, FetchedBatches

_PARTITIONS: Final = 25
_MOST_BYTES: Final = 64 << 20
_PATIENCE_MS: Final = 5_000


class Stored(NamedTuple):
    """What the topic says of one source partition. `offset` is None if it was forgotten."""

    key: bytes
    offset: dict[str, Any] | None
    timestamp_ms: int


def canonical(partition: Partition) -> str:
    """The same text for the same partition."""
    return json.dumps(partition, sort_keys=True, separators=(",", ":"))


def compact(value: Any) -> bytes:
    """As Kafka Connect writes JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def offsets_topic(run: Run) -> NewTopic:
    """As it is made where it is not there. A worker has made it; whoever runs an engine alone has not."""
    factor = run.worker.get("offset.storage.replication.factor")
    partitions = int(run.worker.get("offset.storage.partitions") or _PARTITIONS)
    return NewTopic(
        run.offsets_topic, partitions, int(factor) if factor else None, config={"cleanup.policy": "compact"}
    )


class OffsetsLog:
    """What the topic says of one connector. `catch_up` reads what has come since."""

    def __init__(
        self, access: ClusterAccess, topic: str, connector: str, positions: Mapping[int, int] | None = None
    ) -> None:
        self._access = access
        self._topic = topic
        self._connector = connector
        self._positions: dict[int, int] = dict(positions or {})
        self._known: dict[str, Stored] = {}
        self._waiting: dict[tuple[int, int], list[tuple[int, str, Stored]]] = {}
        """By partition and producer: offset and record, until the producer's marker is met."""

    def get(self, partition: Partition) -> Stored | None:
        return self._known.get(canonical(partition))

    def positions(self) -> dict[int, int]:
        """From where another reader sees everything that this one does not know yet."""
        found = dict(self._positions)
        for (partition, _), records in self._waiting.items():
            found[partition] = min([found[partition], *(offset for offset, _, _ in records)])
        return found

    def catch_up(self) -> None:
        """Reads all partitions to where they end now."""
        if not self._positions:
            described = self._access.describe_topics([self._topic])
            described.raise_first()
            self._positions = {one.partition: 0 for one in described[self._topic].partitions}
        asked = {
            partition: self._access.begin_fetch(TopicPartition(self._topic, partition), offset)
            for partition, offset in self._positions.items()
        }
        for partition, answer in asked.items():
            end = -1
            while True:
                try:
                    fetched = answer()
                except OffsetOutOfRange:
                    self._positions[partition] = self._beginning(partition)
                else:
                    end = fetched.high_watermark if end < 0 else end
                    if not self._take(partition, fetched) or self._positions[partition] >= end:
                        break
                answer = self._access.begin_fetch(TopicPartition(self._topic, partition), self._positions[partition])

    def _beginning(self, partition: int) -> int:
        one = TopicPartition(self._topic, partition)
        return self._access.list_offsets({one: OffsetSpec.EARLIEST})[one].offset or 0

    def _take(self, partition: int, fetched: FetchedBatches) -> bool:
        """Whether there was anything."""
        went_on = False
        for position, header in fetched.batches():
            if header.next_offset <= self._positions[partition]:
                continue  # a batch may begin before what was asked for
            self._positions[partition] = header.next_offset
            went_on = True
            if header.is_control:
                marker = parse_end_transaction_marker(fetched.records, position, header)
                ended = self._waiting.pop((partition, header.producer_id), [])
                if marker is not None and marker.committed:
                    for _, name, stored in ended:
                        self._count(name, stored)
                continue
            for record in read_records(fetched.records, position, header, limit=_MOST_BYTES):
                found = self._read(record)
                if found is None:
                    continue
                if header.is_transactional:
                    waiting = self._waiting.setdefault((partition, header.producer_id), [])
                    waiting.append((record.offset, *found))
                else:
                    self._count(*found)
        return went_on

    def _count(self, name: str, stored: Stored) -> None:
        """The newest of those that say the same partition in other bytes, which may lie in another partition."""
        known = self._known.get(name)
        if known is None or known.key == stored.key or known.timestamp_ms <= stored.timestamp_ms:
            self._known[name] = stored

    def _read(self, record: Any) -> tuple[str, Stored] | None:
        """None for what is no offset of this connector's."""
        if record.key is None:
            return None
        key = bytes(record.key)
        try:
            said = json.loads(key)
            if not isinstance(said, list) or len(said) != 2 or said[0] != self._connector:
                return None
            offset = None if record.value is None else json.loads(bytes(record.value))
        except ValueError:
            return None
        if not isinstance(said[1], dict) or not (offset is None or isinstance(offset, dict)):
            return None
        return canonical(said[1]), Stored(key, offset, record.timestamp)


def end_transaction(run: Run) -> None:
    """Aborts what a stopped source has left open: a task that was cancelled in the middle of its batch. Readers of its
    topics would wait for it until it times out. What cannot be asked now is left to that."""
    settings = {**run.producer_settings(), "max.block.ms": str(_PATIENCE_MS)}
    with suppress(KafkaError), ClusterAccess({"default.api.timeout.ms": str(_PATIENCE_MS), **settings}) as access:
        found = access.describe_transactions([run.transactional_id])[run.transactional_id]
        if found.state is TransactionState.ONGOING:
            with Producer({**settings, "transactional.id": run.transactional_id}) as producer:
                producer.init_transactions()


class OffsetStep(NamedTuple):
    """A batch takes a source partition from one offset to the next."""

    partition: Partition
    key: bytes
    known: Offset | None
    """What the topic said up to the positions that go with the batch."""
    before: Offset | None
    after: Offset


def is_done(log: OffsetsLog, steps: "list[OffsetStep]") -> bool:
    """Whether the topic says that a batch is written already; False if it says that it is the next one.

    `log` has read on from the positions that go with the batch. Raises `TakenOver` if the topic says anything else:
    somebody else has written meanwhile.
    """
    found = [step.known if (stored := log.get(step.partition)) is None else stored.offset for step in steps]
    if all(now == step.before for now, step in zip(found, steps, strict=True)):
        return False
    if all(now == step.after for now, step in zip(found, steps, strict=True)):
        return True
    now, step = next((now, step) for now, step in zip(found, steps, strict=True) if now != step.before)
    raise TakenOver(
        f"the offsets topic says {json.dumps(now)} of {json.dumps(step.partition)}, and this batch begins at "
        f"{json.dumps(step.before)}: another start of the connector has written meanwhile, and this one ends"
    )
