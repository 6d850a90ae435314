"""A broker behind a server, on a network in memory, with one time for both: what clients with quotas see of it."""

from ottla.broker.dispatch import dispatcher
from ottla.machines.metadata.image.quotas_image import quota_record
from ottla.runtime.session import Metering
from ottla.wire.messages import FetchResponse, ProduceResponse
from tests.unit.broker.brokers import TestNode, batch, fetch_request, produce_request
from tests.unit.runtime.memory_server import Client, Scene

PRODUCE, FETCH = 12, 12


class MeteredNode(TestNode):
    """`limit(producer_byte_rate=1000.0, user="ANONYMOUS")` is a quota; a value of None removes it."""

    def __init__(self) -> None:
        super().__init__()
        self.create_topic("orders")
        self.scene = Scene(timers=self.timers, pipe_bytes=1 << 20)
        self.scene.handle = dispatcher(self.broker)
        self.broker.client_quotas.on_metering = self._on_metering

    def _on_metering(self, metering: Metering | None) -> None:
        self.scene.server.metering = metering

    def limit(self, *, user: str | None = "", client_id: str | None = "", **values: float | None) -> None:
        named = {"user": user, "client-id": client_id}
        entity = frozenset((kind, name) for kind, name in named.items() if name != "")
        self.commit(*(quota_record(entity, key, value) for key, value in values.items()))

    def connect(self) -> Client:
        return self.scene.connect()

    def advance(self, by_ms: int) -> None:
        self.timers.advance(by_ms)
        self.scene.network.run()


def produce(client: Client, size: int, acks: int = 1) -> ProduceResponse | None:
    """Sends a batch of about so many bytes; the reply if there is one."""
    client.ask((produce_request(batch(bytes(size)), acks=acks), PRODUCE))
    return next((reply for _, reply in client.replies()), None)


def fetch(client: Client, offset: int = 0, max_bytes: int = 1 << 20) -> FetchResponse | None:
    client.ask((fetch_request(offset=offset, max_bytes=max_bytes), FETCH))
    return next((reply for _, reply in client.replies()), None)
