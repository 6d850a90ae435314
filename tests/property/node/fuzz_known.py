"""What a fuzz knows of the node that it talks to: names that exist, and the ids that earlier replies gave.

A `Scene` is one coherent choice of them for one message: a member with its group and generation, a producer with its
epoch, a topic with its id. So a request gets past the first check, and what is extreme in it meets the code behind.
"""

import time
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.record_values import encode_versioned

TOPICS = tuple(f"fuzzed-{number}" for number in range(12))
CLASSIC = tuple(f"classic-{number}" for number in range(6))
CONSUMER = tuple(f"consumer-{number}" for number in range(6))
TRANSACTIONAL = tuple(f"transactional-{number}" for number in range(8))
NODE_ID = 1
EXPRESSIONS = ("fuzzed-.*", ".*", "(" * 300 + "a" + ")" * 300, "(a+)+", "a{1000}", "(", "[^a]*" * 200, r"\pL+")
SETTINGS = {
    "retention.ms": ("1", "-1", "9223372036854775807", "x"),
    "cleanup.policy": ("delete", "compact", "compact,delete", ""),
    "min.cleanable.dirty.ratio": ("0.5", "0", "NaN", "1" * 30_000 + "x"),
    "segment.ms": ("1000", "0", "604800000"),
    "max.message.bytes": ("1048588", "0", "2147483647"),
    "min.insync.replicas": ("1", "0", "5"),
    "compression.type": ("producer", "zstd", "nothing"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "interval.ms": ("100", "1"),
    "match": ("client_id=a.*", "client_id=(", "client_id=" + "(" * 2000),
    "consumer.session.timeout.ms": ("45000", "1"),
    "log.cleaner.threads": ("1", "0"),
}
FEATURES = {"group.version": 1, "transaction.version": 2, "eligible.leader.replicas.version": 0}
"""Those that may change while the node serves, and the levels at which it serves most."""
_REMEMBERED = 40


class Known:
    """The names are fixed; members, producers and fetch sessions come from replies, the latest ones."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.topic_ids: dict[str, bytes] = {}
        self.members: deque[tuple[str, str, int]] = deque(maxlen=_REMEMBERED)
        self.producers: deque[tuple[str | None, int, int]] = deque(maxlen=_REMEMBERED)
        self.sessions: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self.directory = "."
        self.now_ms: Callable[[], int] = lambda: int(time.time() * 1000)

    def learn(self, request: Any, reply: Any) -> None:
        learn = _LEARNERS.get(type(request).__name__)
        if learn is not None:
            learn(self, request, reply)

    def scene(self) -> "Scene":
        return Scene(self)


class Scene:
    """`fill(owner, name)` is what a field of that name in a struct of that name could hold."""

    def __init__(self, known: Known) -> None:
        random = self._random = known.random
        self._known = known
        self.topic = random.choice(TOPICS)
        self.group, self.member, self.generation = (
            random.choice(known.members) if known.members and random.random() < 0.8 else self._stranger()
        )
        self.transactional_id, self.producer_id, self.epoch = (
            random.choice(known.producers) if known.producers and random.random() < 0.9 else (None, -1, -1)
        )
        self.session = random.choice(known.sessions) if known.sessions and random.random() < 0.3 else (0, -1)

    def _stranger(self) -> tuple[str, str, int]:
        return self._random.choice(CLASSIC + CONSUMER), "", self._random.choice((0, -1))

    def fill(self, owner: str, name: str) -> Any:
        """Raises `KeyError` for a field of which nothing is known."""
        found = _OF_STRUCT.get((owner, name)) or _OF_FIELD[name]
        return found(self)

    # What fields mean

    def any_topic_id(self) -> bytes:
        return self._known.topic_ids.get(self.topic, bytes(16))

    def setting(self) -> str:
        return self._random.choice(tuple(SETTINGS))

    def setting_value(self) -> str:
        return self._random.choice(self._random.choice(tuple(SETTINGS.values())))

    def resource(self) -> str:
        return self._random.choice((self.topic, self.topic, str(NODE_ID), self.group, "subscription", ""))

    def coordinated(self) -> str:
        return self._random.choice((self.group, self.transactional_id or TRANSACTIONAL[0]))

    def subscription(self) -> bytes:
        topics = self._random.sample(TOPICS, 2)
        return encode_versioned(ConsumerProtocolSubscription(topics=topics, user_data=None), 1)

    def assignment(self) -> bytes:
        given = ConsumerProtocolAssignment.TopicPartition(topic=self.topic, partitions=(0, 1))
        return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=[given], user_data=None), 1)

    def batch(self) -> bytes:
        transactional = self.transactional_id is not None and self._random.random() < 0.5
        has_producer = transactional or self._random.random() < 0.3
        builder = BatchBuilder(
            compression=self._random.choice((0, 0, 0, 1, 2, 3, 4)),
            producer_id=self.producer_id if has_producer else -1,
            producer_epoch=self.epoch if has_producer else -1,
            base_sequence=self._random.choice((0, 0, 1, 5)) if has_producer else -1,
            transactional=transactional,
        )
        for _ in range(self._random.choice((1, 1, 3))):
            builder.append(self._known.now_ms(), b"key", b"value")
        return bytes(builder.build())

    def one_of(self, *values: Any) -> Any:
        return self._random.choice(values)


def _one_of(*values: Any) -> Callable[[Scene], Any]:
    return lambda scene: scene.one_of(*values)


def _topic(scene: Scene) -> str:
    return scene.topic


def _group(scene: Scene) -> str:
    return scene.group


def _transactional_id(scene: Scene) -> str:
    return scene.transactional_id or scene.one_of(*TRANSACTIONAL)  # type: ignore[no-any-return]


_partition = _one_of(0, 0, 1, 2, 3)

_OF_STRUCT: dict[tuple[str, str], Callable[[Scene], Any]] = {
    ("JoinGroupRequestProtocol", "name"): _one_of("range", "roundrobin", "sticky"),
    ("CreatableTopicConfig", "name"): Scene.setting,
    ("CreatableTopicConfig", "value"): Scene.setting_value,
    ("AlterableConfig", "name"): Scene.setting,
    ("AlterableConfig", "value"): Scene.setting_value,
    ("OpData", "key"): _one_of("producer_byte_rate", "request_percentage"),
    ("FindCoordinatorRequest", "key"): Scene.coordinated,
    ("AlterReplicaLogDir", "path"): lambda scene: scene._known.directory,
    ("UserName", "name"): _one_of("alice", "bob"),
    ("ScramCredentialDeletion", "name"): _one_of("alice", "bob"),
    ("ScramCredentialUpsertion", "name"): _one_of("alice", "bob"),
    ("Listener", "name"): _one_of("CONTROLLER", "PLAINTEXT"),
    ("Feature", "name"): _one_of("metadata.version", "kraft.version"),
}
_OF_FIELD: dict[str, Callable[[Scene], Any]] = {
    **dict.fromkeys(("group_id", "groups", "group_ids", "groups_names"), _group),
    **dict.fromkeys(("topic", "topic_name", "name", "topic_names", "subscribed_topic_names"), _topic),
    **dict.fromkeys(("topic_id", "topic_ids"), Scene.any_topic_id),
    **dict.fromkeys(("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), _transactional_id),
    **dict.fromkeys(
        ("partition", "partition_index", "partition_id", "index", "partition_indexes", "partition_ids", "partitions"),
        _partition,
    ),
    **dict.fromkeys(("generation_id", "generation_id_or_member_epoch"), lambda scene: scene.generation),
    "v3_and_below_producer_id": lambda scene: scene.producer_id,
    "v3_and_below_producer_epoch": lambda scene: scene.epoch,
    "member_epoch": lambda scene: scene.one_of(scene.generation, scene.generation, 0, -1, -2),
    "member_id": lambda scene: scene.member,
    "producer_id": lambda scene: scene.producer_id,
    "producer_epoch": lambda scene: scene.epoch,
    "session_id": lambda scene: scene.session[0],
    "session_epoch": lambda scene: scene.session[1],
    "coordinator_keys": Scene.coordinated,
    "group_instance_id": _one_of(None, None, "static-1"),
    "instance_id": _one_of(None, None, "static-1"),
    "protocol_type": _one_of("consumer"),
    "protocol_name": _one_of("range", "roundrobin"),
    "server_assignor": _one_of(None, "uniform", "range"),
    "subscribed_topic_regex": _one_of(None, None, *EXPRESSIONS),
    "transactional_id_pattern": _one_of(None, *EXPRESSIONS),
    "states_filter": _one_of("Stable", "Empty", "odd"),
    "state_filters": _one_of("Ongoing", "Empty", "odd"),
    "types_filter": _one_of("classic", "consumer", "odd"),
    "resource_name": Scene.resource,
    "resource_type": _one_of(2, 2, 4, 8, 16, 32),
    "configuration_keys": Scene.setting,
    "entity_type": _one_of("user", "client-id", "ip"),
    "entity_name": _one_of("alice", None, "127.0.0.1"),
    "metadata": Scene.subscription,
    "assignment": Scene.assignment,
    "records": Scene.batch,
    "acks": _one_of(-1, -1, 1, 0),
    "feature": _one_of(*FEATURES, *FEATURES, "metadata.version", "kraft.version", "unknown.version"),
    "max_version_level": _one_of(0, 1, 2, 3, 25),
    "upgrade_type": _one_of(1, 2, 3),
    "session_timeout_ms": _one_of(6000, 10_000),
    "rebalance_timeout_ms": _one_of(1, 50, 300),
    "timeout_ms": _one_of(0, 100, 1000),
    "transaction_timeout_ms": _one_of(1000, 60_000),
    "max_wait_ms": _one_of(0, 0, 2),
    "min_bytes": _one_of(0, 1),
    "max_bytes": _one_of(1 << 20, 100),
    "partition_max_bytes": _one_of(1 << 20, 100),
    "fetch_offset": _one_of(0, 1, 5, 20),
    "committed_offset": _one_of(0, 5),
    "committed_metadata": _one_of("", "a note"),
    "timestamp": _one_of(-1, -2, -3, 0),
    "current_leader_epoch": _one_of(-1, 0),
    "leader_epoch": _one_of(-1, 0),
    "last_fetched_epoch": _one_of(-1, 0),
    "replica_id": _one_of(-1, -1, NODE_ID),
    "broker_id": _one_of(NODE_ID, 7),
    "broker_ids": _one_of(NODE_ID),
    "replicas": _one_of(NODE_ID),
    "num_partitions": _one_of(1, 3, -1),
    "replication_factor": _one_of(1, -1),
    "count": _one_of(4, 5),
    "config_operation": _one_of(0, 0, 1, 2, 3),
    "key_type": _one_of(0, 0, 1, 2),
    "mechanism": _one_of(1, 2),
    "iterations": _one_of(4096),
    "endpoint_type": _one_of(1, 2),
    "retention_time_ms": _one_of(-1, 1000),
    "isolation_level": _one_of(0, 1),
    "client_software_name": _one_of("fuzz"),
    "client_software_version": _one_of("1"),
    "cluster_id": _one_of(""),
    "client_host_address": _one_of(b"\x7f\0\0\1"),
}


# Learning


def _joined(known: Known, request: Any, reply: Any) -> None:
    if reply.member_id and len(reply.member_id) < 1000 and request.group_id in CLASSIC + CONSUMER:
        known.members.append((request.group_id, reply.member_id, reply.generation_id))


def _beaten(known: Known, request: Any, reply: Any) -> None:
    is_known = request.group_id in CLASSIC + CONSUMER and len(reply.member_id or "") < 1000
    if reply.member_id and is_known and reply.error_code == ErrorCode.NONE:
        known.members.append((request.group_id, reply.member_id, reply.member_epoch))


def _initialised(known: Known, request: Any, reply: Any) -> None:
    if reply.producer_id >= 0:
        known.producers.append((request.transactional_id, reply.producer_id, reply.producer_epoch))


def _ended(known: Known, request: Any, reply: Any) -> None:
    if reply.producer_id >= 0:
        known.producers.append((request.transactional_id, reply.producer_id, reply.producer_epoch))


def _fetched(known: Known, request: Any, reply: Any) -> None:
    if reply.session_id:
        known.sessions.append((reply.session_id, known.random.choice((1, 2, max(request.session_epoch, 0) + 1))))


def _described(known: Known, request: Any, reply: Any) -> None:
    known.topic_ids.update((topic.name, topic.topic_id) for topic in reply.topics if topic.name in TOPICS)


_LEARNERS: dict[str, Callable[[Known, Any, Any], None]] = {
    "JoinGroupRequest": _joined,
    "ConsumerGroupHeartbeatRequest": _beaten,
    "InitProducerIdRequest": _initialised,
    "EndTxnRequest": _ended,
    "FetchRequest": _fetched,
    "MetadataRequest": _described,
    "CreateTopicsRequest": _described,
}
