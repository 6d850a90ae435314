"""Two nodes that are asked the same, one with compiled code and one without: what they answer and keep, to the byte.

Theory of operation. A history is drawn from a seed: frames as clients send them, sound ones and hostile ones, and
between them what happens to a cluster (settings, leaders, topics that go and come back, disks that are full or fail,
time). Each step is done to both nodes. Afterwards every reply has to be the same bytes, or to be missing at both; the
same clients have been hung up on; and what the partitions know and what the disks hold is the same.
"""

import errno
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from ottla.base.checksum import crc32c
from ottla.base.errors import RemoteProtocolError
from ottla.base.ids import ZERO_UUID
from ottla.base.lent import give_back, lend
from ottla.broker.coordination import coordinated_partition
from ottla.broker.coordination.gathering import gather_nothing
from ottla.broker.data import plain_fetch, produce
from ottla.broker.data.plain_produce import append_none
from ottla.broker.groups import offset_commit
from ottla.broker.partitions import quick_append
from ottla.machines.group import commits
from ottla.records import _slow, validate
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.runtime.outbox import Region, pin_all
from ottla.runtime.request import RequestContext
from ottla.wire.frame import (
    decode_request_in_steps,
    encode_request,
    encode_response_in_python,
    encode_response_parts,
    request_reader,
)
from ottla.wire.message import Message
from ottla.wire.messages import (
    DeleteRecordsRequest,
    FetchRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionChangeRecord,
    ProduceRequest,
    WriteTxnMarkersRequest,
)
from tests.unit.broker.brokers import NODE_ID, TestNode, batch, produced, topic_id_of

GROUPS = "__consumer_offsets"
TOPICS = {"orders": 3, "bills": 2, "shared": 2, "small": 1, "flushed": 1, "stamped": 1, "compacted": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "small": {"internal_segment_bytes": "3000", "index_interval_bytes": "200"},
    "flushed": {"flush_messages": "3"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "shared": {"min_insync_replicas": "2"},
}
CHANGES: tuple[dict[str, str | None], ...] = (
    {"max_message_bytes": "200"},
    {"max_message_bytes": None},
    {"min_insync_replicas": "2"},
    {"min_insync_replicas": None},
    {"flush_messages": "1"},
    {"flush_messages": None},
    {"compression_type": "gzip"},
    {"compression_type": None},
    {"message_timestamp_after_max_ms": "5"},
    {"message_timestamp_after_max_ms": None},
    {"internal_segment_bytes": "2000"},
    {"internal_segment_bytes": None},
    {"segment_index_bytes": "60"},
    {"segment_index_bytes": None},
    {"index_interval_bytes": "0"},
    {"index_interval_bytes": None},
    {"segment_ms": "40"},
    {"segment_ms": None},
)
VERSIONS = {
    ProduceRequest: range(3, 14),
    FetchRequest: range(4, 19),
    OffsetCommitRequest: range(2, 11),
    OffsetFetchRequest: range(1, 10),
    DeleteRecordsRequest: range(3),
    WriteTxnMarkersRequest: range(1, 2),
}
_KINDS = {
    "plain": 8.0, "producer": 8.0, "header": 2.0, "again": 1.0, "codec": 1.0, "gap": 0.5, "corrupt": 0.5, "empty": 0.5,
    "two": 0.5, "transactional": 0.5, "magic": 0.5, "late": 0.5, "control": 0.3, "large": 0.3, "wrapped": 0.3,
    "none": 0.3,
}  # fmt: skip
"""Of batches, and how many of each."""
_MAGIC_AT, _CRC_AT, _CHECKED_FROM = 16, 17, 21


class _Received(RequestContext):
    """What a connection makes of a frame."""

    __slots__ = ("message",)

    def __init__(self, node: TestNode) -> None:
        super().__init__(0, 0, 0, None, node.client, 0.0)
        self.message: Message | None = None


_read = request_reader(_Received)


class TwinNode(TestNode):
    """`replies` has bytes for each frame: None while it has no reply, and empty where there is none to have."""

    __test__ = False

    def __init__(self, *, is_compiled: bool) -> None:
        self.is_compiled = is_compiled
        self.replies: list[bytes | None] = []
        with self.as_it_is():
            super().__init__(transaction_partition_verification_enable="false", num_partitions="2")
            self.register_broker(NODE_ID, "here", 9092)
            self.register_broker(2, "there", 9092)
            self.create_topic(GROUPS, 2, cleanup_policy="compact")
            for topic in TOPICS:
                self.create(topic)

    def create(self, topic: str, id: Any = None) -> None:
        replicas = (NODE_ID, 2) if topic == "shared" else (NODE_ID,)
        self.create_topic(topic, TOPICS[topic], replicas=replicas, id=id, **SETTINGS.get(topic, {}))

    @contextmanager
    def as_it_is(self) -> Iterator[None]:
        """In it, compiled code is there or is not."""
        if self.is_compiled:
            yield
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(produce, "append_all_plain", append_none)
            patch.setattr(plain_fetch, "read_all_plain", plain_fetch.read_none)
            patch.setattr(quick_append, "append_made_here", quick_append.append_never)
            patch.setattr(quick_append, "append_produced", quick_append.append_never)
            patch.setattr(coordinated_partition, "gather", gather_nothing)
            patch.setattr(offset_commit, "name_all", commits.name_all_in_python)
            patch.setattr(commits, "encode", commits.encode_in_python)
            patch.setattr(commits, "replay", commits.replay_in_python)
            patch.setattr(validate, "PlainBatches", _slow.PlainBatches)
            patch.setattr(validate, "is_sound", _slow.is_sound)
            yield

    def take(self, frame: bytes) -> None:
        """A frame as a client sends it, without its size. It is only lent to what handles it."""
        place, data = len(self.replies), bytearray(frame)
        self.replies.append(None)
        with self.as_it_is():
            try:
                received = self._decode(data)
                self._handle(received, received.message, lambda reply: self._reply(place, received, reply))  # type: ignore[arg-type]
            except RemoteProtocolError:
                self.replies[place] = b"hung up"
            except Exception as problem:
                self.replies[place] = f"failed: {problem!r}".encode()
            give_back(data, len(data))

    def _decode(self, data: bytearray) -> _Received:
        frame = lend(memoryview(data))
        if self.is_compiled:
            return _read(_Received(self), frame)
        received, steps = _Received(self), decode_request_in_steps(frame)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                header, received.message = end.value
                break
        received.api_key, received.api_version = header.request_api_key, header.request_api_version
        received.correlation_id, received.client_id = header.correlation_id, header.client_id
        received.size = len(data)
        return received

    def _reply(self, place: int, received: _Received, reply: Message | None) -> None:
        assert self.replies[place] is None, "a second reply"
        if reply is None:
            self.replies[place] = b""
            return
        encode = encode_response_parts if self.is_compiled else encode_response_in_python
        sent = bytearray()
        for part in pin_all(encode(reply, received.api_version, received.correlation_id)):  # type: ignore[arg-type]
            if isinstance(part, Region):
                sent += part.file.read_at(part.position, part.left)
                part.file.unpin()
            else:
                sent += part
        self.replies[place] = bytes(sent)

    def known(self) -> dict[str, Any]:
        """What it knows of its partitions, as far as compiled code may change it."""
        partitions = self.broker.partitions
        told: dict[str, Any] = {"offline": sorted(partitions.offline), "hung up": len(self.line.problems)}
        for (topic, index), partition in partitions.items():
            log, state = partition.log, partition.state
            told[f"{topic}-{index}"] = {
                "offsets": (log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset),
                "leader": None if state is None else (state.local_end_offset, state.high_watermark, state.isr),
                "flush": (partition.awaits_flush, log.recovery_point),
                "fresh": dict(partition._fresh),
                "epochs": list(log.epochs.entries),
                "producers": [producer.record() for producer in log.producers],
                "unreplicated": dict(log.producers.unreplicated),
                "segments": [
                    (one.base_offset, one.size, one._bytes_since_index_entry, one.max_timestamp) for one in log.segments
                ],
                "traffic": [getattr(partition.traffic, name) for name in partition.traffic.__slots__],
                "waiting": len(partition.waiting or ()),
            }
        return told


class Twins:
    """A history on both nodes. `run` raises `AssertionError` where they differ."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.nodes = TwinNode(is_compiled=True), TwinNode(is_compiled=False)
        self.sent: list[str] = []
        self.sequences: dict[tuple[str, int, int], int] = {}
        self.ids = {topic: topic_id_of(topic) for topic in TOPICS}
        self.epochs = Counter[str]()
        self.answers = Counter[str]()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.chance.random() < 0.12:
                self.happen()
            else:
                request, version = self.request()
                frame = self.damaged(encode_request(request, version, self.chance.randrange(1 << 31), "me")[4:])
                self.sent.append(f"{request!r} version {version}"[:3000])
                for node in self.nodes:
                    node.take(frame)
            self.compare()
        for node in self.nodes:
            with node.as_it_is():
                node.timers.advance(100_000)
        self.compare()
        files = [node.disk.files() for node in self.nodes]  # type: ignore[attr-defined]
        assert files[0].keys() == files[1].keys()
        for path in files[0]:
            assert files[0][path] == files[1][path], path
        for reply in self.nodes[0].replies:
            kind = "none yet" if reply is None else "none" if not reply else "bytes"
            if reply and reply[:6] in (b"hung u", b"failed"):
                kind = reply.decode()
            self.answers[kind] += 1

    def compare(self) -> None:
        compiled, in_python = self.nodes
        for place, (one, other) in enumerate(zip(compiled.replies, in_python.replies, strict=True)):
            assert one == other, f"reply {place} to {self.sent[place]}"
        last = self.sent[-1] if self.sent else ""
        assert compiled.known() == in_python.known(), last
        have_news = [node.broker.partitions.has_news_for_checkpoints for node in self.nodes]
        assert have_news[0] == have_news[1], last

    # What happens to the cluster

    def happen(self) -> None:
        chance = self.chance
        topic = chance.choice([*TOPICS])
        index = chance.randrange(TOPICS[topic])
        kind = chance.choices(
            ["time", "settings", "leader", "deleted", "full", "error", "follower", "checkpoint"],
            [8, 4, 3, 1, 2, 0.15, 6, 2],
        )[0]
        change = chance.choice(CHANGES)
        by_ms = chance.choice([1, 5, 60, 200, 1000])
        end = chance.random()
        fresh_id = bytes(chance.randrange(256) for _ in range(16))
        if kind == "leader":
            self.epochs[f"{topic}-{index}"] += 1
        for node in self.nodes:
            with node.as_it_is():
                partition = node.partition(topic, index)
                if kind == "time":
                    node.timers.advance(by_ms)
                elif kind == "settings":
                    node.configure_topic(topic, **change)
                elif kind == "leader" and partition is not None:
                    self.change_leader(node, topic, index, here=end < 0.6)
                elif kind == "deleted":
                    self.ids[topic] = type(ZERO_UUID)(fresh_id)
                    node.delete_topic(topic)
                    node.create(topic, self.ids[topic])
                elif kind == "full":
                    node.disk.fail_next("write", errno.ENOSPC)  # type: ignore[attr-defined]
                elif kind == "error":
                    node.disk.fail_next("write", errno.EIO)  # type: ignore[attr-defined]
                elif kind == "follower":
                    self.follow(node, end)
                elif kind == "checkpoint":
                    node.broker.partitions.has_news_for_checkpoints = False
        if kind == "deleted":
            self.sequences = {key: value for key, value in self.sequences.items() if key[0] != topic}

    def change_leader(self, node: TwinNode, topic: str, index: int, *, here: bool) -> None:
        """Another epoch of this node, or one of nobody and then one of this node again."""
        for leader in (NODE_ID,) if here else (-1, NODE_ID):
            node.commit(
                PartitionChangeRecord(topic_id=node.image.topics.by_name[topic].id, partition_id=index, leader=leader)
            )

    def follow(self, node: TwinNode, share: float) -> None:
        """The follower has fetched some of what there is."""
        for index in range(TOPICS["shared"]):
            partition = node.partition("shared", index)
            if partition is not None and partition.state is not None and 2 in partition.state.followers:
                log = partition.log
                offset = log.high_watermark + int((log.log_end_offset - log.high_watermark) * min(1.0, share * 2))
                moved = partition.apply_high_watermark(partition.state.on_fetched(2, offset, 0, node.clock.now_ms()))
                if moved:
                    node.broker.partitions.purgatory.wake(partition)

    # What clients ask

    def request(self) -> tuple[Message, int]:
        make = self.chance.choices(
            [self.produce, self.fetch, self.commit, self.committed, self.delete_records, self.write_markers],
            [10, 10, 4, 1, 0.5, 1],
        )[0]
        return make()

    def damaged(self, frame: bytes) -> bytes:
        chance = self.chance
        if chance.random() > 0.06:
            return frame
        kind = chance.randrange(3)
        at = chance.randrange(8, len(frame)) if len(frame) > 8 else 0
        if kind == 0:
            return frame[:at]
        if kind == 1:
            return frame + bytes(chance.randrange(9))
        changed = bytearray(frame)
        for _ in range(chance.choice([1, 1, 4])):
            changed[chance.randrange(8, len(frame))] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
        return bytes(changed)

    def places(self) -> list[tuple[str, list[int]]]:
        """Topics and partitions, of which some are named twice, and some are not there."""
        chance, places = self.chance, list[tuple[str, list[int]]]()
        for _ in range(chance.choice([0, 1, 1, 1, 1, 1, 2, 4, 9])):
            topic = chance.choice([*TOPICS, "nowhere", GROUPS] if chance.random() < 0.15 else [*TOPICS])
            most = TOPICS.get(topic, 1) + (chance.random() < 0.05)
            count = chance.choice([0, 1, 1, 1, most, most + 1])
            indexes = [chance.randrange(most) for _ in range(count)]
            places.append((topic, [-1] if chance.random() < 0.01 else indexes))
        return places

    def named(self, topic: str, version: int, ids_since: int, name: str) -> dict[str, Any]:
        if version < ids_since:
            return {name: topic}
        unknown = bytes(self.chance.randrange(2) for _ in range(16)) if self.chance.random() < 0.03 else None
        return {"topic_id": type(ZERO_UUID)(unknown) if unknown else self.ids.get(topic, topic_id_of(topic))}

    def records(self, topic: str, index: int) -> bytearray | None:
        chance = self.chance
        values = [b"v" * chance.choice([0, 1, 10, 200])] * chance.choice([1, 2, 5])
        kind = chance.choices([*_KINDS], [*_KINDS.values()])[0]
        producer = chance.randint(1, 3)
        key = topic, index, producer
        sequence = self.sequences.get(key, 0)
        now_ms = self.nodes[0].clock.now_ms()
        match kind:
            case "producer":
                self.sequences[key] = sequence + len(values)
                return produced(producer, sequence, *values, timestamp=now_ms)
            case "wrapped":
                return produced(9, 0x7FFFFFFF - chance.randrange(3), *values, timestamp=now_ms)
            case "again":
                return produced(producer, max(sequence - 1, 0), *values[:1], timestamp=now_ms)
            case "gap":
                return produced(producer, sequence + 3, *values, epoch=chance.choice([0, 1, -1]), timestamp=now_ms)
            case "codec":
                return batch(*values, compression=chance.choice([1, 2, 3, 4]), timestamp=now_ms)
            case "corrupt":
                data = batch(*values, timestamp=now_ms)
                data[-1 - chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                return data
            case "empty":
                return bytearray(chance.choice([0, 5, 61, 70]))
            case "none":
                return None
            case "two":
                return batch(*values, timestamp=now_ms) + batch(*values, timestamp=now_ms)
            case "header":
                return self.strange(produced(producer, sequence, *values, timestamp=now_ms))
            case "control":
                return build_end_transaction_marker(EndTransactionMarker(True, 0), producer, 0, now_ms)
            case "transactional":
                return produced(producer, sequence, *values, transactional=True, timestamp=now_ms)
            case "magic":
                data = batch(*values, timestamp=now_ms)
                data[_MAGIC_AT] = chance.choice([0, 1, 3])
                return data
            case "late":
                return batch(*values, timestamp=chance.choice([0, -1, now_ms - 9, now_ms + 10, now_ms + 7_200_000]))
            case "large":
                return batch(*[b"v" * chance.choice([3000, 9000, 20_000])], timestamp=now_ms)
        return batch(*values, timestamp=now_ms)

    def strange(self, data: bytearray) -> bytearray:
        """A header that says something else than it should, with a checksum that is right."""
        chance = self.chance
        for _ in range(chance.choice([1, 1, 2])):
            at = chance.randrange(61 if chance.random() < 0.8 else len(data))
            data[at] = chance.choice([0, 1, 2, 127, 255, 16, 32])
        if chance.random() < 0.5:
            data[8:12] = (len(data) - 12).to_bytes(4, "big")
            data[_MAGIC_AT] = 2
        data[_CRC_AT:_CHECKED_FROM] = crc32c(data[_CHECKED_FROM:]).to_bytes(4, "big")
        return data

    def produce(self) -> tuple[Message, int]:
        chance, version = self.chance, self.chance.choice(VERSIONS[ProduceRequest])
        topics = [
            ProduceRequest.TopicProduceData(
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=index, records=self.records(topic, index))
                    for index in indexes
                ],
                **self.named(topic, version, 13, "name"),
            )
            for topic, indexes in self.places()
        ]
        acks = chance.choice([1] * 15 + [-1] * 12 + [0] * 5 + [2, -2])
        name = "t" if chance.random() < 0.05 and version < 12 else None
        timeout_ms = chance.choice([0, 50, 100, 100, -1])
        return ProduceRequest(transactional_id=name, acks=acks, timeout_ms=timeout_ms, topic_data=topics), version

    def fetch(self) -> tuple[Message, int]:
        chance, version = self.chance, self.chance.choice(VERSIONS[FetchRequest])
        sizes = [1 << 20, 1 << 20, 1 << 20, 300, 90, 70, 20, 1, 0, -1, -70, -(1 << 31), (1 << 31) - 1]
        topics = [
            FetchRequest.FetchTopic(
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=index,
                        fetch_offset=self.offset(topic, index),
                        current_leader_epoch=self.epoch(f"{topic}-{index}") if version >= 9 else -1,
                        last_fetched_epoch=chance.choice([-1] * 15 + [0, 1]) if version >= 12 else -1,
                        partition_max_bytes=chance.choice(sizes),
                    )
                    for index in indexes
                ],
                **self.named(topic, version, 13, "topic"),
            )
            for topic, indexes in self.places()
        ]
        session: dict[str, Any] = {"session_epoch": -1}
        if version >= 7 and chance.random() < 0.06:
            session = {"session_epoch": chance.choice([0, 1, -1]), "session_id": chance.choice([0, 5])}
        request = FetchRequest(
            topics=topics,
            max_wait_ms=chance.choice([0, 0, 0, 50, 500, -1]),
            min_bytes=chance.choice([1, 1, 1, 1, 0, -1, 500, 100_000]),
            max_bytes=chance.choice([1 << 20, *sizes]),
            isolation_level=chance.choice([0, 1, 0, 1, 0, 1, 2]),
            **session,
        )
        return request, version

    def offset(self, topic: str, index: int) -> int:
        chance = self.chance
        partition = self.nodes[0].partition(topic, index)
        if partition is None:
            return chance.randrange(5)
        log = partition.log
        ends = [log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset]
        if chance.random() < 0.5:
            return chance.randint(log.log_start_offset, log.log_end_offset)
        end: int = chance.choice(ends)
        return end + chance.choice([0, 0, 0, -1, 1])

    def epoch(self, partition: str) -> int:
        epoch = self.epochs[partition]
        return self.chance.choice([-1, -1, epoch, epoch, epoch * 2, max(0, epoch - 1), 1 << 30])

    def commit(self) -> tuple[Message, int]:
        chance, version = self.chance, self.chance.choice(VERSIONS[OffsetCommitRequest])
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=chance.choice([0, 7, chance.randrange(1 << 62), -1]),
                        committed_leader_epoch=chance.choice([-1, 0, 5]) if version >= 6 else -1,
                        committed_metadata=chance.choice(["", None, "note", "ü" * 90, "n" * 5000]),
                    )
                    for index in indexes
                ],
                **self.named(topic, version, 10, "name"),
            )
            for topic, indexes in self.places()
        ]
        more: dict[str, Any] = {"member_id": "somebody"} if chance.random() < 0.1 else {}
        generation = chance.choice([-1, -1, -1, -1, 0, 5])
        if 2 <= version <= 4:
            more["retention_time_ms"] = chance.choice([-1, -1, 1000])
        group = chance.choice(["a", "b", "c", ""])
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=generation, topics=topics, **more)
        return request, version

    def committed(self) -> tuple[Message, int]:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.chance.choice("abc"), topics=None)
        return OffsetFetchRequest(groups=[group]), 9

    def delete_records(self) -> tuple[Message, int]:
        topic = self.chance.choice([*TOPICS])
        index = self.chance.randrange(TOPICS[topic])
        one = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=self.offset(topic, index))
        named = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[one])
        version = self.chance.choice(VERSIONS[DeleteRecordsRequest])
        return DeleteRecordsRequest(topics=[named], timeout_ms=50), version

    def write_markers(self) -> tuple[Message, int]:
        chance = self.chance
        topics = [
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in self.places()
        ]
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=chance.randint(1, 3),
            producer_epoch=chance.choice([0, 0, 0, 1]),
            transaction_result=chance.random() < 0.5,
            topics=topics,
            coordinator_epoch=0,
        )
        return WriteTxnMarkersRequest(markers=[marker]), 1
