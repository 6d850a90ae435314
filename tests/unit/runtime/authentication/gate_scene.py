"""A listener with SASL and its clients, in memory, in a time that a test moves."""

import struct
from collections.abc import Mapping
from typing import Any

from ottla.runtime.authentication.authenticator import Authenticator, NewMechanism
from ottla.runtime.request import RefusedRequest, RequestContext, Respond
from ottla.runtime.request_metrics import RequestMetrics
from ottla.runtime.server import Limits, Server
from ottla.security.sasl.plain import Passwords, PlainServer
from ottla.security.sasl.scram_client import ScramClient
from ottla.security.sasl.scram_keys import SCRAM_HASHES
from ottla.security.sasl.scram_server import FoundCredential, ScramServer
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    ApiVersionsResponse,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SHA_256 = "SCRAM-SHA-256"
DELAY_MS = 100
CREDENTIAL = SCRAM_HASHES[SHA_256].credential("scram-secret", b"salt", 4096)
EXPIRES_IN_MS = 60_000


class Scene:
    """Users alice and bob have PLAIN, carol SCRAM; the token `t1` is carol's and ends in a minute."""

    def __init__(
        self, *, max_reauth_ms: int = 0, mechanisms: Mapping[str, NewMechanism] | None = None, max_bytes: int = 1 << 20
    ) -> None:
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.network = MemoryNetwork()
        self.metrics = RequestMetrics(self.timers.now_s)
        self.asked: list[tuple[RequestContext, Any]] = []
        self.server = Server(
            self.network,
            self.timers,
            StepWorkers(),
            self._handle,
            _unsupported,
            Limits(max_request_bytes=max_bytes, max_idle_ms=-1),
            self.metrics,
        )
        self.address = self.server.listen("node", 9092, "SASL_PLAINTEXT", is_gated=True)
        passwords = Passwords({"alice": "alice-secret", "bob": "bob-secret"})
        self.authenticator = Authenticator(
            mechanisms
            or {
                "PLAIN": lambda: PlainServer(passwords),
                SHA_256: lambda: ScramServer(SHA_256, self._find, "server-nonce", b"secret"),
            },
            max_receive_bytes=1000,
            failure_delay_ms=DELAY_MS,
            max_reauth_ms=dict.fromkeys(mechanisms or ("PLAIN", SHA_256), max_reauth_ms),
            now_ms=self.clock.now_ms,
        )
        self.server.set_authenticator("SASL_PLAINTEXT", self.authenticator)
        self.server.start_accepting()

    def connect(self) -> "Client":
        return Client(self)

    def advance(self, by_ms: int) -> None:
        self.timers.advance(by_ms)
        self.network.run()

    def count(self, outcome: str) -> int:
        return self.metrics.authentications["SASL_PLAINTEXT", outcome]

    def _find(self, name: str, is_token: bool) -> FoundCredential | None:
        if is_token and name == "t1":
            return FoundCredential(CREDENTIAL, "carol", self.clock.now_ms() + EXPIRES_IN_MS)
        return FoundCredential(CREDENTIAL, name) if name == "carol" and not is_token else None

    def _handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        self.asked.append((context, message))
        if context.api_key == ApiKey.API_VERSIONS:
            context.connection.software_name = "a-client"
            respond(ApiVersionsResponse())
        elif context.api_key == ApiKey.SASL_HANDSHAKE:
            respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        else:
            respond(MetadataResponse(cluster_id=context.connection.principal))


class Client:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._line = scene.network.connect(*scene.address)
        self._received = b""

    def send(self, data: bytes) -> None:
        self._line.send(data)
        self._scene.network.run()

    def ask(self, request: Message, version: int) -> Any:
        """The reply; None if there is none (yet)."""
        self.send(encode_request(request, version, 7, "a-client"))
        return self.receive(request, version)

    def receive(self, request: Message, version: int) -> Any:
        frame = self.receive_frame()
        return None if frame is None else decode_response(response_type(request._schema.api_key), frame, version)[1]

    def receive_frame(self) -> bytes | None:
        self._received += self._line.receive()
        if len(self._received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._received)
        frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
        return frame

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(self, user: str = "alice", password: str | None = None) -> Any:
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(f"\0{user}\0{password or user + '-secret'}".encode())

    def log_in_by_scram(self, user: str, password: str = "scram-secret", *, is_token: bool = False) -> Any:
        self.handshake(SHA_256)
        mechanism = ScramClient(SHA_256, user, password, "client-nonce", is_token=is_token)
        reply = self.authenticate(mechanism.respond(None) or b"")
        return self.authenticate(mechanism.respond(bytes(reply.auth_bytes)) or b"")

    @property
    def is_closed(self) -> bool:
        return self._line.is_closed


def _unsupported(context: RequestContext, respond: Respond) -> None:
    if context.api_key != ApiKey.API_VERSIONS:
        raise RefusedRequest("not served")
    respond(ApiVersionsResponse(error_code=35))
