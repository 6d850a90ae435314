"""A node whose controller really decides, in the same process and at once: requests in, metadata and replies out.

node = AdminNode()
node.create_topics("orders")
reply = node.send(MetadataRequest(...), version=13)
"""

from collections.abc import Callable
from random import Random
from typing import Any

from brokers import NODE_ID, TestNode

from ottla.base.ids import Uuid
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.features import FEATURES
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest, FeatureLevelRecord, RegisterBrokerRecord

CLUSTER_ID = "the-cluster"
DIRECTORY = Uuid(b"d" * 16)


class LocalController:
    """Appends by replaying: what is decided is committed, and the node has heard of it before the client."""

    def __init__(self, node: TestNode) -> None:
        self._node = node
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
        decision = decide(self.controller, self._node.clock.now_ms())
        for record in decision.records:
            self.controller.replay(record.message)
        self._node.commit(*(record.message for record in decision.records))
        then(decision.reply)


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
                    "share.version": 1,
                    "streams.version": 1,
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
        self.broker.controller = LocalController(self)

    def create_topics(self, *names: str, partitions: int = 1) -> None:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
        reply = self.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        assert [topic.error_code for topic in reply.topics] == [ErrorCode.NONE] * len(names)
