"""A controller to talk to in tests: it replays what it decides, as its driver would after appending."""

import random
from typing import Any, TypeVar

from ottla.base.ids import Uuid
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.machines.decision import Decision
from ottla.machines.metadata.controller.activation import bootstrap_records
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.features import FEATURES
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.apis import api
from ottla.wire.message import Message
from ottla.wire.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest
from ottla.wire.record_values import decode_metadata_record, encode_metadata_record

ReplyT = TypeVar("ReplyT")

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NODE_SETTINGS = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}


def directory_of(broker_id: int) -> Uuid:
    return Uuid(b"directory of %3d" % broker_id)


class ControllerUnderTest:
    """`now_ms` is the clock; every record passes through its bytes, as through the log."""

    cluster_id = CLUSTER_ID

    def __init__(self, image: MetadataImage | None = None, seed: int = 0, **settings: str) -> None:
        chance = random.Random(seed)
        given = NODE_SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self.controller = Controller(
            MetadataImage() if image is None else image,
            node_id=1,
            cluster_id=CLUSTER_ID,
            config=parse(Scope.BROKER, given).values,
            new_uuid=lambda: Uuid(chance.randbytes(16)),
            random=chance,
        )
        self.now_ms = 1_000_000
        self.log: list[Message] = []
        """All that was replayed here."""
        if image is None:
            self.do(self.controller.activate(bootstrap_records()))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def next_offset(self) -> int:
        return self.controller.next_offset

    def do(self, decision: Decision[ReplyT]) -> ReplyT:
        self.replay(decision)
        return decision.reply

    def replay(self, decision: Decision[Any], delta: MetadataDelta | None = None) -> None:
        for record in decision.records:
            written, _ = decode_metadata_record(encode_metadata_record(record.message, record.version))
            self.image.replay(written, delta)
            self.log.append(written)
            self.controller.next_offset += 1

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Decides on a request, of the newest version if none is given, and replays."""
        newest = api(request._schema.api_key).stable_versions[-1]
        return self.do(self.controller.decide(request, newest if version is None else version, self.now_ms))

    def register(
        self,
        broker_id: int,
        *,
        rack: str | None = None,
        life: int = 0,
        clean: bool = False,
        directory: Uuid | None = None,
    ) -> int:
        """Registers a broker, in its `life`; gives its epoch."""
        before = self.image.brokers.by_id.get(broker_id)
        supported = BrokerRegistrationRequest.Feature
        reply = self.ask(
            BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id=self.cluster_id,
                incarnation_id=Uuid(b"broker %3d, #%3d" % (broker_id, life)),
                listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=9092)],
                features=[
                    supported(name=name, min_supported_version=low, max_supported_version=high)
                    for name, ((low, high), *_) in FEATURES.items()
                ],
                rack=rack,
                log_dirs=(directory or directory_of(broker_id),),
                previous_broker_epoch=before.epoch if clean and before else -1,
            ),
        )
        assert reply.error_code == 0
        return int(reply.broker_epoch)

    def heartbeat(self, broker_id: int, **wants: Any) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.image.brokers.by_id[broker_id].epoch,
            current_metadata_offset=self.next_offset,
            **wants,
        )
        return self.ask(request)

    def fence_silent_brokers(self) -> None:
        while self.do(self.controller.fence_silent_broker(self.now_ms)):
            pass

    def start(self, *broker_ids: int, **rack: str | None) -> None:
        """Registers and unfences."""
        for broker_id in broker_ids:
            self.register(broker_id, **rack)
            assert not self.heartbeat(broker_id).is_fenced


def one_node() -> ControllerUnderTest:
    node = ControllerUnderTest()
    node.start(1)
    return node
