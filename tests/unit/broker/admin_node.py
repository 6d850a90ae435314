"""A node whose controller really decides, in the same process and at once: requests in, metadata and replies out.

node = AdminNode()
node.create_topics("orders")
reply = node.send(MetadataRequest(...), version=13)
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from ottla.base.ids import Uuid
from ottla.broker.dispatch import dispatcher
from ottla.controller.controller_apis import find_handler
from ottla.controller.controller_server import ControllerServer
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.features import FEATURES
from ottla.runtime.channels import Caller, ControllerChannel, Failed, Then
from ottla.runtime.metadata.quorum.quorum_view import QuorumEndpoint, QuorumReplica
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import CreateTopicsRequest, FeatureLevelRecord, RegisterBrokerRecord
from tests.unit.broker.brokers import NODE_ID, TestNode, over_the_wire

CLUSTER_ID = "the-cluster"
DIRECTORY = Uuid(b"d" * 16)


class LocalController:
    """A metadata log that appends by replaying: what is decided is committed, and the node has heard of it before the
    client. Between `hold` and `let_go` nothing is committed; while `is_away`, another node's controller is active.
    """

    def __init__(self, node: TestNode) -> None:
        self._node = node
        self._parked: list[Callable[[], None]] | None = None
        self.is_away = False
        self.asked = 0
        seeded = Random(4)
        self.controller = Controller(
            node.image.copy(),
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            config=node.config,
            new_uuid=lambda: Uuid(seeded.randbytes(16)),
            random=seeded,
        )

    def submit(self, decide: Any, then: Callable[[Any], None], failed: Callable[[ErrorCode], None]) -> None:
        self.asked += 1
        if self.is_away:
            failed(ErrorCode.NOT_CONTROLLER)
            return
        decision = decide(self.controller, self._node.clock.now_ms())
        for record in decision.records:
            self.controller.replay(record.message)
        self._node.commit(*(record.message for record in decision.records))
        if self._parked is None:
            then(decision.reply)
        else:
            self._parked.append(lambda: then(decision.reply))

    def hold(self) -> None:
        self._parked = []

    def let_go(self) -> None:
        parked, self._parked = self._parked or [], None
        for give in parked:
            give()


class OverTheWire:
    """A channel whose messages are bytes between the two ends: nothing but data gets through."""

    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel

    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        self._channel.ask(
            over_the_wire(request, version), version, caller, lambda reply: then(over_the_wire(reply, version)), failed
        )


class Quorum:
    """Two voters; the other one leads."""

    leader_id, leader_epoch, high_watermark = 2, 3, 356

    def voters(self, now_ms: int) -> list[QuorumReplica]:
        return [QuorumReplica(1), QuorumReplica(2)]

    def observers(self, now_ms: int) -> list[QuorumReplica]:
        return []

    def endpoints(self) -> list[QuorumEndpoint]:
        return [
            QuorumEndpoint(1, "CONTROLLER", "one", 9093),
            QuorumEndpoint(2, "CONTROLLER", "two", 9093),
            QuorumEndpoint(2, "OTHER", "two", 9094),
        ]


class AdminNode(TestNode):
    """One registered broker, with the features of a newly formatted cluster."""

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)
        self.commit(
            *(
                FeatureLevelRecord(name=name, feature_level=level)
                for name, level in {
                    "metadata.version": 30,
                    "group.version": 1,
                    "transaction.version": 2,
                }.items()
            ),
            RegisterBrokerRecord(
                broker_id=NODE_ID,
                end_points=[endpoint],
                features=[
                    RegisterBrokerRecord.BrokerFeature(
                        name=name,
                        min_supported_version=feature.supported.lowest,
                        max_supported_version=feature.supported.highest,
                    )
                    for name, feature in FEATURES.items()
                ],
                fenced=False,
                rack=None,
                log_dirs=(DIRECTORY,),
            ),
        )
        self.log = LocalController(self)
        self.server = ControllerServer(
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            node_settings=self.broker.node_settings,
            image=self.image,
            log=self.log,
            quorum=Quorum(),
            world=self.broker.world,
        )
        self.controller.other = OverTheWire(self.server)
        self._handle = dispatcher(self.broker, partial(find_handler, self.server))

    def create_topics(self, *names: str, partitions: int = 1) -> None:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
        reply = self.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        assert [topic.error_code for topic in reply.topics] == [ErrorCode.NONE] * len(names)
