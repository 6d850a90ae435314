"""TLS of clients, against a server of Python's own: bytes both ways, and what is said when it does not come about."""

import asyncio
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.base.ports import Transport
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.io.loop_thread import LoopThread
from ottla.client.io.tls_failures import later_failure
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings, read_settings
from ottla.client.world import ClientWorld, TlsFailed
from ottla.config.parse import ConfigError
from ottla.config.scopes import Scope
from tests.interop.certificate_maker import Authority, Issued

TIMEOUT_S = 20
MUCH = bytes(range(256)) * 8192


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class EchoServer:
    """Accepts connections one by one, and sends back what comes, in TLS if it has a certificate."""

    def __init__(self, issued: Issued | None, *, wants: Path | None = None, answer: bytes | None = None) -> None:
        self._answer = answer
        self._context: ssl.SSLContext | None = None
        if issued is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(issued.pem)
            if wants is not None:
                self._context.verify_mode = ssl.CERT_REQUIRED
                self._context.load_verify_locations(wants)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            try:
                self._echo(sock)
            except OSError:
                sock.close()

    def _echo(self, sock: socket.socket) -> None:
        sock.settimeout(TIMEOUT_S)
        if self._answer is not None:
            sock.recv(1)
            sock.sendall(self._answer)
            sock.close()
            return
        assert self._context is not None
        with self._context.wrap_socket(sock, server_side=True) as secured:
            while data := secured.recv(1 << 16):
                secured.sendall(data)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(TIMEOUT_S)


@pytest.fixture
def served() -> Iterator[Callable[..., EchoServer]]:
    servers: list[EchoServer] = []

    def serve(issued: Issued | None, **options: object) -> EchoServer:
        servers.append(EchoServer(issued, **options))  # type: ignore[arg-type]  # a test's own options
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


def settings_for(authority: Authority, **more: object) -> ClientSettings:
    given = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL", "ssl.truststore.type": "PEM"}
    given["ssl.truststore.location"] = str(authority.pem)
    return read_settings(Scope.ADMIN, given, more)


class EchoedBytes:
    """Sends all of something, and is done when it has come back."""

    def __init__(self, transport: Transport, data: bytes) -> None:
        self.done: Promise[bytes] = Promise()
        self._transport = transport
        self._unsent: list[memoryview] = [memoryview(data)[at : at + 70_000] for at in range(0, len(data), 70_000)]
        self._wanted = len(data)
        self._received = bytearray()
        self.on_writable()

    def on_writable(self) -> None:
        try:
            while self._unsent:
                sent = self._transport.send_parts(self._unsent, more=False)
                while self._unsent and sent >= len(self._unsent[0]):
                    sent -= len(self._unsent.pop(0))
                if sent:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            pass
        except OSError as problem:
            self._end(problem)
            return
        self._transport.watch(self, reading=True, writing=bool(self._unsent))

    def on_readable(self) -> None:
        room = bytearray(100_000)
        try:
            while len(self._received) < self._wanted:
                count = self._transport.receive_into(room)
                self._received += room[:count]
                if count < len(room):
                    break
        except BlockingIOError:
            return
        except OSError as problem:
            self._end(problem)
            return
        if len(self._received) >= self._wanted:
            self._transport.close()
            self.done.resolve_if_waiting(bytes(self._received))

    def _end(self, problem: OSError) -> None:
        self._transport.close()
        self.done.reject_if_waiting(problem)


def echoed(world: ClientWorld, host: str, port: int, data: bytes) -> Promise[bytes]:
    outcome: Promise[bytes] = Promise()

    def then(transport: Transport) -> None:
        EchoedBytes(transport, data).done.on_done(
            lambda done: outcome.resolve(done.value()) if done.error is None else outcome.reject(done.error)
        )

    world.dialer.dial(host, port, receive_buffer_bytes=8192, send_buffer_bytes=8192, then=then, failed=outcome.reject)
    return outcome


def echo(settings: ClientSettings, port: int, data: bytes = b"ping", host: str = "localhost") -> bytes:
    loop = LoopThread("test-tls", settings)
    try:
        return loop.ask(lambda: echoed(loop.world, host, port, data), TIMEOUT_S)
    finally:
        loop.stop()


def failure(settings: ClientSettings, port: int, host: str = "localhost") -> str:
    """What cannot be mended by trying again. A server that hangs up may be gone before its reason has come."""
    for _ in range(100):
        try:
            echo(settings, port, host=host)
        except TlsFailed as refused:
            return str(refused)
        except OSError:
            continue
    raise AssertionError("no reason came")


def test_much_goes_both_ways_through_small_buffers(authority: Authority, served: Callable[..., EchoServer]) -> None:
    assert echo(settings_for(authority), served(authority.issue("node")).port, MUCH) == MUCH


def test_asyncio_does_the_same(authority: Authority, served: Callable[..., EchoServer]) -> None:
    port = served(authority.issue("node")).port

    async def scene() -> bytes:
        world = AsyncioWorld(settings_for(authority))
        try:
            return await asyncio.wait_for(world.future(echoed(world.world, "localhost", port, MUCH)), TIMEOUT_S)
        finally:
            world.close()

    assert asyncio.run(scene()) == MUCH


def test_an_older_tls_is_spoken_if_it_is_asked_for(authority: Authority, served: Callable[..., EchoServer]) -> None:
    settings = settings_for(authority, ssl_enabled_protocols="TLSv1.2")
    assert echo(settings, served(authority.issue("node")).port, MUCH) == MUCH


def test_a_certificate_that_has_expired_is_refused(authority: Authority, served: Callable[..., EchoServer]) -> None:
    port = served(authority.issue("old", expired=True)).port
    assert failure(settings_for(authority), port) == f"the certificate of localhost:{port} has expired"


def test_a_certificate_of_another_ca_is_refused(
    authority: Authority, served: Callable[..., EchoServer], tmp_path: Path
) -> None:
    told = failure(settings_for(Authority(tmp_path)), served(authority.issue("node")).port)
    assert "is of no CA that ssl.truststore.location has" in told


def test_names_and_addresses_are_compared_unless_that_is_turned_off(
    authority: Authority, served: Callable[..., EchoServer]
) -> None:
    port = served(authority.issue("elsewhere", names=("elsewhere.example",))).port
    assert "is for another name" in failure(settings_for(authority), port)
    assert "is for another name" in failure(settings_for(authority), port, host="127.0.0.1")
    assert echo(settings_for(authority, ssl_endpoint_identification_algorithm=""), port) == b"ping"


def test_our_own_certificate_is_shown_and_missed(authority: Authority, served: Callable[..., EchoServer]) -> None:
    """With TLS 1.3 it is missed only after our side of the handshake is done."""
    port = served(authority.issue("node"), wants=authority.pem).port
    own = authority.issue("client")
    settings = settings_for(authority, ssl_keystore_type="PEM", ssl_keystore_location=str(own.pem))
    assert echo(settings, port) == b"ping"
    assert "it wants a certificate of the client" in failure(settings_for(authority), port)


def test_a_port_without_tls_is_told_from_one_that_hangs_up(
    authority: Authority, served: Callable[..., EchoServer]
) -> None:
    assert "does not speak TLS" in failure(settings_for(authority), served(None, answer=b"\0\0\0\4what").port)
    with pytest.raises(OSError, match="does the listener have TLS") as raised:
        echo(settings_for(authority), served(None, answer=b"").port)
    assert not isinstance(raised.value, TlsFailed)


def test_files_that_cannot_be_used_are_told_before_anything_is_connected(authority: Authority) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore"):
        LoopThread("test-tls", settings_for(authority, ssl_truststore_location="/no/such/file"))


def test_a_client_without_tls_loads_no_openssl() -> None:
    program = (
        "import sys; from ottla import Admin; Admin(bootstrap_servers='127.0.0.1:1').close(); "
        "print(*({'ssl', '_ssl', '_hashlib', 'http'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("reason", "is_tried_again"),
    [
        ("DECRYPTION_FAILED_OR_BAD_RECORD_MAC", True),
        ("SSLV3_ALERT_BAD_RECORD_MAC", True),
        ("RECORD_LAYER_FAILURE", True),
        ("WRONG_VERSION_NUMBER", True),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", False),
        ("SSLV3_ALERT_BAD_CERTIFICATE", False),
    ],
)
def test_what_was_damaged_after_the_handshake_costs_a_connection_and_a_refused_certificate_the_client(
    reason: str, is_tried_again: bool
) -> None:
    problem = ssl.SSLError(ssl.SSL_ERROR_SSL, "what OpenSSL says")
    problem.reason = reason
    assert isinstance(later_failure(problem, "here:9093"), TlsFailed) is not is_tried_again
