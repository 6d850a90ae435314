"""What clients of listeners with TLS can take before anybody knows them, with SASL behind it and without."""

import errno
import ssl
import struct
import tracemalloc
from contextlib import suppress

import pytest

from ottla.base.ports import Listener
from ottla.runtime.admission import Admission, ConnectionLimits
from ottla.runtime.authentication.authenticator import Authenticator
from ottla.runtime.request import RefusedRequest, RequestContext, Respond
from ottla.runtime.server import Arrivals, Limits, Server
from ottla.runtime.tls.handshake_lane import HandshakeLane
from ottla.runtime.tls.tls_listener import HANDSHAKE_S, MOST_HALF_OPEN, TlsListener
from ottla.runtime.tls.trust import ListenerTrust
from ottla.security.sasl.plain import Passwords, PlainServer
from ottla.security.tls.contexts import client_context
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.wire.frame import encode_request
from ottla.wire.message import Message
from ottla.wire.messages import MetadataRequest, MetadataResponse
from tests.unit.runtime.hostile_frames import FRAMES, HUGE
from tests.unit.runtime.raising_once import Fault, raise_once
from tests.unit.security.tls import trial_certificates as trial

LISTENERS = ("SSL", "SASL_SSL")
DELAY_MS = 100
METADATA = encode_request(MetadataRequest(topics=None), 12, 7, "a-client")
COUNTS = [
    struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + HUGE,  # Metadata of two thousand million topics
    struct.pack(">hhihi", 3, 1, 1, -1, 0x7FFFFFFF),
    struct.pack(">hhih", 19, 7, 1, -1) + b"\0" + HUGE,  # as many topics to make
    struct.pack(">hhih", 0, 9, 1, -1) + b"\0\0" + struct.pack(">hi", -1, 1000) + HUGE,  # to write to
    struct.pack(">hhih", 3, 12, 1, -1) + HUGE + b"\0\0\0",  # tagged fields in the header
    struct.pack(">hhih", 3, 12, 1, -1) + b"\0\x01\0\0" + HUGE,  # and behind the request
]


class Scene:
    def __init__(self, **limits: int) -> None:
        self.timers = StepTimers(FixedClock())
        self.network = MemoryNetwork()
        self.asked: list[Message] = []
        self.server = Server(
            self.network,
            self.timers,
            StepWorkers(),
            self._handle,
            _unsupported,
            Limits(max_idle_ms=-1),
            admission=Admission(ConnectionLimits(**limits)),  # type: ignore[arg-type]
        )
        self._trust = ListenerTrust(trial.inline(trial.node(), trial.authority()))
        self._lane = HandshakeLane(self.network, self.timers.now_s)
        self.addresses = {
            name: self.server.listen("node", 0, name, is_gated=name == "SASL_SSL", secure=self._secured)
            for name in LISTENERS
        }
        passwords = Passwords({"alice": "alice-secret"})
        authenticator = Authenticator(
            {"PLAIN": lambda: PlainServer(passwords)},
            max_receive_bytes=1000,
            failure_delay_ms=DELAY_MS,
            max_reauth_ms={},
            now_ms=lambda: 0,
        )
        self.server.set_authenticator("SASL_SSL", authenticator)
        self.server.start_accepting()

    def _secured(self, inner: Listener, arrivals: Arrivals) -> TlsListener:
        return TlsListener(
            inner, "TLS", self._trust, self._lane, self.network, self.timers, lambda reason: None, arrivals
        )

    def _handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        self.asked.append(message)
        respond(MetadataResponse(cluster_id=context.connection.principal))


def _unsupported(context: RequestContext, *_: object) -> None:
    raise RefusedRequest("nobody knows this API")


class Client:
    """One that has shaken hands, unless it is silent."""

    def __init__(self, scene: Scene, listener: str, *, is_silent: bool = False) -> None:
        self._scene = scene
        self.line = scene.network.connect(*scene.addresses[listener])
        scene.network.run()
        if is_silent:
            return
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(trial.inline(None, trial.authority()))
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        for _ in range(3):
            with suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
            self._exchange()

    def _exchange(self) -> None:
        self.line.send(self._out.read())
        self._scene.network.run()
        self._in.write(self.line.receive())

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._exchange()

    def received(self) -> bytes:
        with suppress(ssl.SSLWantReadError):
            return self._tls.read(1 << 16)
        return b""


def sent(client: Client, data: bytes, scene: Scene) -> int:
    """The most memory that was taken meanwhile."""
    tracemalloc.start()
    try:
        client.send(data)
        scene.timers.advance(DELAY_MS)
        scene.network.run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module", params=LISTENERS)
def listener(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Whatever is made on first use is there."""
    scene = Scene()
    for name in LISTENERS:
        Client(scene, name).send(METADATA)
    return scene


@pytest.mark.parametrize("frame", [*FRAMES, *COUNTS])
def test_vulnerability_counts_and_tagged_fields_do_not_allocate_behind_tls(
    scene: Scene, listener: str, frame: bytes
) -> None:
    scene.asked.clear()
    client = Client(scene, listener)
    peak = sent(client, struct.pack(">i", len(frame)) + frame, scene)
    assert client.line.is_closed
    assert scene.asked == []
    assert peak < 2_000_000


def test_vulnerability_a_frame_that_is_only_announced_allocates_nothing_behind_tls(scene: Scene, listener: str) -> None:
    """One of the largest that `socket.request.max.bytes` allows; before SASL much less is."""
    client = Client(scene, listener)
    peak = sent(client, struct.pack(">i", scene.server.limits.max_request_bytes) + METADATA[4:8], scene)
    assert client.line.is_closed is (listener == "SASL_SSL")
    assert peak < 2_000_000


@pytest.mark.parametrize(
    "hello",
    [
        b"\x16\x03\x01\x00\x06\x01\xff\xff\xff\x03\x03",  # a message of 16 megabytes
        b"\x16\x03\x01\xff\xff" + b"\x01\x00\xff\xfb\x03\x03",  # a record that is larger than records are
        b"\x16\x03\x01\x00\x00" * 100,  # records without anything in them
    ],
)
def test_vulnerability_a_handshake_that_announces_much_allocates_nothing(
    scene: Scene, listener: str, hello: bytes
) -> None:
    client = Client(scene, listener, is_silent=True)
    tracemalloc.start()
    try:
        client.line.send(hello)
        scene.network.run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert client.line.is_closed
    assert peak < 2_000_000


def test_vulnerability_half_open_handshakes_take_no_place_of_max_connections(listener: str) -> None:
    scene = Scene(max_connections=2)
    silent = [Client(scene, listener, is_silent=True) for _ in range(MOST_HALF_OPEN - 10)]
    clients = [Client(scene, "SSL") for _ in range(2)]
    for client in clients:
        client.send(METADATA)
        assert b"User:ANONYMOUS" in client.received()
    assert len(scene.server.connections) == 2
    assert not any(client.line.is_closed for client in silent)
    clients[0].line.close()
    scene.network.run()
    third = Client(scene, "SSL")
    third.send(METADATA)
    assert b"User:ANONYMOUS" in third.received()


def test_vulnerability_half_open_handshakes_count_against_max_connections_per_ip(listener: str) -> None:
    scene = Scene(max_per_ip=3)
    silent = [Client(scene, listener, is_silent=True) for _ in range(3)]
    more = Client(scene, listener, is_silent=True)
    assert more.line.is_closed
    assert not any(client.line.is_closed for client in silent)
    silent[0].line.close()
    scene.network.run()
    other = Client(scene, "SSL")
    other.send(METADATA)
    assert b"User:ANONYMOUS" in other.received(), "who has gone before the end of its handshake does not count any more"
    scene.timers.advance(int(HANDSHAKE_S * 1000))
    others = [Client(scene, "SSL", is_silent=is_silent) for is_silent in (False, False, True)]
    assert [client.line.is_closed for client in others] == [False, False, True]


def test_vulnerability_half_open_handshakes_count_against_the_rate_of_connections(listener: str) -> None:
    """A thousand that say nothing are looked at as slowly as a thousand that speak."""
    scene = Scene(max_rate=1)
    silent = [Client(scene, listener, is_silent=True) for _ in range(50)]
    for client in silent:
        client.line.send(b"not TLS")
    scene.network.run()
    assert 0 < sum(client.line.is_closed for client in silent) < 50, "the others wait to be looked at"
    for _ in range(100):
        scene.timers.advance(1000)
        scene.network.run()
    assert all(client.line.is_closed for client in silent)


@pytest.mark.parametrize("limits", [{"max_per_ip": 1}, {"max_rate": 1}], ids=["by address", "by rate"])
def test_clients_that_come_while_there_are_no_descriptors_are_refused_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    """The listener makes itself a new context every minute, from a file that has to be opened."""
    scene = Scene(**limits)

    def no_descriptors(_trust: ListenerTrust, _now_s: float) -> ssl.SSLContext:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as full:
        full.setattr(ListenerTrust, "server_at", no_descriptors)
        clients = [Client(scene, "SSL", is_silent=True) for _ in range(5)]
        for _ in range(10):
            scene.timers.advance(1000)
            scene.network.run()
        assert all(client.line.is_closed for client in clients)
    scene.timers.advance(10_000)
    client = Client(scene, "SSL")
    client.send(METADATA)
    assert b"User:ANONYMOUS" in client.received()


def test_a_client_that_had_to_wait_and_raises_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(max_rate=1)
    waiting = [Client(scene, "SSL", is_silent=True) for _ in range(20)]
    with monkeypatch.context() as broken:
        raise_once(broken, Admission, "wait_before_refusal")
        with suppress(Fault):
            scene.timers.advance(1000)
        scene.network.run()
    for _ in range(60):
        scene.timers.advance(1000)
        scene.network.run()
    assert sum(client.line.is_closed for client in waiting) == len(waiting) - 1, "their time for a handshake is over"


def replies(client: Client) -> int:
    """How many replies have come, each whole."""
    data, count = client.received(), 0
    while data:
        (size,) = struct.unpack_from(">i", data)
        assert len(data) >= 4 + size
        data, count = data[4 + size :], count + 1
    return count


@pytest.mark.parametrize("bad", [b"\x00\x00\x00\x04rubb", b"\xff\xff\xff\xff"])
@pytest.mark.parametrize("in_one_record", [True, False])
def test_replies_that_are_ready_leave_behind_tls_before_the_connection_of_a_bad_request_is_closed(
    bad: bytes, in_one_record: bool
) -> None:
    scene = Scene()
    client = Client(scene, "SSL")
    for record in [METADATA * 2 + bad] if in_one_record else [METADATA, METADATA, bad]:
        client._tls.write(record)
    client._exchange()
    assert replies(client) == len(scene.asked) == 2
    assert client.line.is_closed


def test_a_request_that_comes_with_a_record_that_does_not_decrypt_is_not_carried_out() -> None:
    """It could not be answered: after such a record TLS takes no more bytes, in either direction."""
    scene = Scene()
    client = Client(scene, "SSL")
    client._tls.write(METADATA)
    record = client._out.read()
    client.line.send(record + record)
    scene.network.run()
    assert scene.asked == []
    assert client.line.is_closed
