"""What the tests of the broker share: a node on a disk in memory, with time, threads and a controller under control.

    node = TestNode()
    node.create_topic("orders")
    reply = node.send(ProduceRequest(...), version=13)

Nothing happens behind a test's back: disk jobs run when they are given, unless `node.workers.hold()` keeps them, and
timers fire when `node.timers.advance` moves time.
"""

from collections.abc import Callable
from hashlib import md5
from typing import Any

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.lent import give_back
from ottla.base.ports import Disk
from ottla.broker.broker import Broker
from ottla.broker.cluster.local_peers import LocalPeers
from ottla.broker.dispatch import dispatcher
from ottla.broker.partitions.topic_settings import SettingsOfTopics
from ottla.broker.replication.leader_connections import LeaderConnections
from ottla.config.parse import Values, parse
from ottla.config.scopes import Scope
from ottla.log.cleaning.runner import Runner
from ottla.log.log_dirs import LogDirs
from ottla.log.outcomes import FileSlice
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import complete_batches
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records
from ottla.runtime.channels import Caller, ControllerChannel, Failed, PeerChannel, Then
from ottla.runtime.request import ClientConnection, RequestContext, Respond
from ottla.testing.clock import FixedClock
from ottla.testing.host_names import FixedHostNames
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_cleaner import StepRunner
from ottla.testing.step_timers import Agenda, StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.testing.step_world import step_world
from ottla.wire.codec import decode, encode
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConfigRecord,
    FetchRequest,
    FetchResponse,
    PartitionChangeRecord,
    PartitionRecord,
    ProduceRequest,
    ProduceResponse,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

NODE_ID = 1
NOW_MS = 1_700_000_000_000
PENDING = "pending"


class StepController:
    """A channel to a controller that is played by the test: it gives the reply that was put there for the next request.

    `asked` are the requests, as they come over a connection; a reply goes the same way.
    """

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.callers: list[Caller] = []
        self.replies: list[Any] = []
        self._parked: list[Callable[[], None]] = []
        self.is_held = False
        self.other: ControllerChannel | None = None
        """A channel that answers instead."""

    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        if self.other is not None:
            self.other.ask(request, version, caller, then, failed)
            return
        self.asked.append(over_the_wire(request, version))
        self.callers.append(caller)
        if self.is_held:
            self._parked.append(lambda: self._answer(version, then, failed))
        else:
            self._answer(version, then, failed)

    def _answer(self, version: int, then: Then, failed: Failed) -> None:
        reply = self.replies.pop(0)
        if isinstance(reply, Message):
            then(over_the_wire(reply, version))
        else:
            failed(reply)

    def let_go(self) -> None:
        self.is_held = False
        parked, self._parked = self._parked, []
        for answer in parked:
            answer()


class StepPeers:
    """A channel to other brokers. What goes to the node itself is answered by it, as over a connection; other nodes are
    played by the test: each request is given the next of `replies`, a message or an error. They wait while `is_held`.
    """

    def __init__(self, node_id: int = NODE_ID) -> None:
        self._node_id = node_id
        self.local: LocalPeers | None = None
        self.asked: list[tuple[int, Any]] = []
        self.replies: list[Any] = []
        self.is_held = False
        self.other: PeerChannel | None = None
        """A channel to real ones."""
        self._parked: list[Callable[[], None]] = []

    def ask(self, node_id: int, request: Message, version: int, then: Then, failed: Failed) -> None:
        request = over_the_wire(request, version)
        self.asked.append((node_id, request))
        if node_id == self._node_id:
            assert self.local is not None
            self.local.ask(node_id, request, version, lambda reply: then(over_the_wire(reply, version)), failed)
        elif self.other is not None:
            self.other.ask(node_id, request, version, then, failed)
        elif self.is_held:
            self._parked.append(lambda: self._answer(version, then, failed))
        else:
            self._answer(version, then, failed)

    def _answer(self, version: int, then: Then, failed: Failed) -> None:
        reply = self.replies.pop(0)
        if isinstance(reply, Message):
            then(over_the_wire(reply, version))
        else:
            failed(reply)

    def let_go(self) -> None:
        self.is_held = False
        parked, self._parked = self._parked, []
        for answer in parked:
            answer()


class StepLine:
    """The client's connection: whether it was hung up, and why."""

    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def on_paused(self) -> None:
        """Nothing waits behind the requests of a test."""

    def on_resumed(self) -> None:
        """Nothing waits behind the requests of a test."""

    def hang_up(self, problem: Exception) -> None:
        self.problems.append(problem)


class Reply:
    """What a handler answers: nothing yet, None, or a message, as its client would decode it."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.is_here = False
        self.message: Any = None

    def __call__(self, message: Message | None) -> None:
        assert not self.is_here, "a second reply"
        self.is_here = True
        self.message = None if message is None else over_the_wire(message, self._version)


def over_the_wire(message: Message, version: int) -> Message:
    """Encodes and decodes, so that a test sees what a client of that version sees; file slices become bytes."""
    if isinstance(message, FetchResponse):
        for topic in message.responses:
            for partition in topic.partitions:
                if isinstance(partition.records, FileSlice):
                    partition.records = partition.records.read()
    return decode(type(message), encode(message, version), version)


class OwnTurns(MemoryNetwork):
    """Every request of a test is a turn of its own: what is to happen at its end happens at once."""

    def at_end_of_turn(self, callback: Callable[[], None]) -> None:
        callback()


class TestNode:
    """A broker with its surroundings. Another one on `node.disk` is the same node after a restart."""

    __test__ = False

    def __init__(
        self,
        disk: Disk | None = None,
        image: MetadataImage | None = None,
        clock: FixedClock | None = None,
        log_dirs: tuple[str, ...] = ("/data",),
        directory_ids: dict[str, Uuid] | None = None,
        node_id: int = NODE_ID,
        agenda: Agenda | None = None,
        leaders: LeaderConnections | None = None,
        **settings: str,
    ) -> None:
        self.node_id = node_id
        self.disk = disk or MemoryDisk()
        self.image = image or MetadataImage()
        self.clock = clock or FixedClock(NOW_MS)
        self.timers = StepTimers(self.clock, agenda)
        self.workers = StepWorkers()
        self.network = OwnTurns()
        self.controller = StepController()
        self.peers = StepPeers(node_id)
        self.config = broker_settings(node_id=str(node_id), **settings)
        topics = SettingsOfTopics(self.config)
        self.logs = LogDirs(
            self.disk,
            log_dirs,
            self.clock,
            config_of=lambda topic: topics.of(self.image.configs.of_topic(topic)).log,
            producer_expiration_ms=self.config.integer("producer.id.expiration.ms"),
        )
        self.logs.open_all()
        self.broker = Broker(
            node_id=node_id,
            cluster_id="the-cluster",
            config=self.config,
            image=self.image,
            logs=self.logs,
            world=step_world(
                self.disk,
                self.clock,
                timers=self.timers,
                workers=self.workers,
                network=self.network,
                host_names=FixedHostNames({"somewhere": ["10.0.0.7"]}),
                make_cleaner=self.make_cleaner,
            ),
            controller=self.controller,
            peers=self.peers,
            leaders=leaders,
            settings=topics,
            directory_ids=directory_ids,
        )
        self.peers.local = LocalPeers(self.broker)
        self.broker.start()
        self._handle = dispatcher(self.broker)
        self.line = StepLine()
        self.client = ClientConnection(1, "PLAINTEXT", "127.0.0.1", line=self.line)

    def make_cleaner(self) -> Runner:
        """For cleanings, which are done at once."""
        return StepRunner(self.disk)

    # Metadata

    def commit(self, *records: Message) -> None:
        """Records are committed: the image changes, and the broker is told."""
        delta = MetadataDelta()
        for record in records:
            self.image.replay(record, delta)
        self.broker.on_metadata(delta)

    def create_topic(
        self,
        name: str = "orders",
        partitions: int = 1,
        *,
        replicas: tuple[int, ...] = (NODE_ID,),
        isr: tuple[int, ...] | None = None,
        leader: int = NODE_ID,
        leader_epoch: int = 0,
        id: Uuid | None = None,
        directories: tuple[Uuid, ...] = (),
        **settings: str,
    ) -> Uuid:
        topic_id = id or topic_id_of(name)
        self.commit(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value)
                for key, value in settings.items()
            ),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=isr or replicas,
                    leader=leader,
                    leader_epoch=leader_epoch,
                    directories=directories or (bytes(16),) * len(replicas),
                )
                for index in range(partitions)
            ),
        )
        return topic_id

    def change_partition(self, name: str = "orders", index: int = 0, **changes: Any) -> None:
        topic_id = self.image.topics.by_name[name].id
        self.commit(PartitionChangeRecord(topic_id=topic_id, partition_id=index, **changes))

    def delete_topic(self, name: str = "orders") -> None:
        self.commit(RemoveTopicRecord(topic_id=self.image.topics.by_name[name].id))

    def configure_topic(self, name: str = "orders", **settings: str | None) -> None:
        self.commit(
            *(
                ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value)
                for key, value in settings.items()
            )
        )

    def register_broker(self, id: int, host: str, port: int, *, fenced: bool = False) -> None:
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host=host, port=port)
        self.commit(RegisterBrokerRecord(broker_id=id, end_points=[endpoint], fenced=fenced))

    # Requests

    def ask(self, request: Message, version: int, client_id: str | None = None) -> Reply:
        """Sends a request as a client of that version does. The reply may come later."""
        reply = Reply(version)
        self.hear(request, version, reply, client_id)
        return reply

    def hear(self, request: Message, version: int, respond: Respond, client_id: str | None = None) -> None:
        """The same for who takes the reply as it is made. Its bytes are only lent to the handler."""
        data = bytearray(encode(request, version))
        request = decode(type(request), data, version)
        context = RequestContext(request._schema.api_key, version, 7, client_id, self.client, 0.0, len(data))
        self._handle(context, request, respond)
        give_back(data, len(data))

    def send(self, request: Message, version: int, client_id: str | None = None) -> Any:
        """Sends a request that is answered at once."""
        reply = self.ask(request, version, client_id)
        assert reply.is_here, "no reply yet"
        return reply.message

    # Produce and fetch in one line

    def produce(
        self,
        records: bytes | bytearray | None,
        topic: str = "orders",
        index: int = 0,
        acks: int = -1,
        version: int = 12,
    ) -> ProduceResponse.PartitionProduceResponse:
        return only(self.send(produce_request(records, topic, index, acks), version))

    def fetch(
        self, offset: int = 0, topic: str = "orders", index: int = 0, version: int = 12, **fields: Any
    ) -> FetchResponse.PartitionData:
        return only(self.send(fetch_request(offset, topic, index, **fields), version))

    def partition(self, topic: str = "orders", index: int = 0) -> Any:
        return self.broker.partitions.get(TopicPartition(topic, index))


def broker_settings(**settings: str) -> Values:
    """The broker's settings, as from a file; underscores for dots."""
    required = {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.listener.names": "CONTROLLER",
    }
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return parse(Scope.BROKER, {**required, **given}).values


def topic_id_of(name: str) -> Uuid:
    return Uuid(md5(name.encode()).digest())


def batch(*values: bytes, timestamp: int = NOW_MS, **fields: Any) -> bytearray:
    """A batch of these values, all with the same key and timestamp."""
    builder = BatchBuilder(**fields)
    for value in values or (b"value",):
        builder.append(timestamp, b"key", value)
    return builder.build()


def produced(producer_id: int, sequence: int, *values: bytes, epoch: int = 0, **fields: Any) -> bytearray:
    """A batch of an idempotent producer."""
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def produce_request(
    records: bytes | bytearray | None, topic: str = "orders", index: int = 0, acks: int = -1, **fields: Any
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=index, records=records)
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data], **fields)


_FETCH_FIELDS = {"current_leader_epoch", "last_fetched_epoch", "partition_max_bytes"}


def fetch_request(offset: int = 0, topic: str = "orders", index: int = 0, **fields: Any) -> FetchRequest:
    of_partition = {key: fields.pop(key) for key in _FETCH_FIELDS & fields.keys()}
    partition = FetchRequest.FetchPartition(
        partition=index, fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **of_partition}
    )
    return FetchRequest(
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        **{"max_bytes": 50 << 20, "min_bytes": 1, "max_wait_ms": 0, "session_epoch": -1, **fields},
    )


def only(response: Any) -> Any:
    """The one partition of a response."""
    topics = response.responses if hasattr(response, "responses") else response.topics
    (topic,) = topics
    (partition,) = getattr(topic, "partition_responses", None) or topic.partitions
    return partition


def values_in(data: FetchResponse.PartitionData) -> list[bytes | None]:
    """The values of the records in the whole batches of a fetched partition."""
    records = bytes(data.records)  # type: ignore[arg-type]
    return [
        record.value
        for position, header in complete_batches(records)
        for record in read_records(records, position, header)
    ]
