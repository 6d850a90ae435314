"""A client's end of a connection, over a node that the test answers for, at times that the test says."""

import random
from typing import Any

import pytest

from ottla.base.errors import RemoteProtocolError
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram_client import ScramClient
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.api_versions import NotServed
from ottla.wire.exchange.client_end import ClientEnd, State
from ottla.wire.exchange.login import ClientMechanism, SaslLogin
from ottla.wire.exchange.open_request import (
    NEVER,
    Ask,
    ConnectionFailed,
    NoAnswer,
    OpenRequest,
    Refused,
    RequestLate,
)
from ottla.wire.frame import decode_request, encode_response
from ottla.wire.message import Message
from ottla.wire.messages import (
    ApiVersionsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SERVED = {
    ApiKey.PRODUCE: (3, 9),
    ApiKey.METADATA: (0, 12),
    ApiKey.LIST_GROUPS: (0, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
}
SETUP_S = 10.0
NAMED = SaslHandshakeResponse(mechanisms=["PLAIN"])
PLAIN = PlainClient("alice", "hunter2")


class Told(OpenRequest):
    """A request that notes its outcome."""

    __slots__ = ("outcomes",)

    def __init__(self, request: Ask, api_key: int = ApiKey.METADATA, **limits: Any) -> None:
        super().__init__(api_key, request, limits.pop("newest", None), **limits)
        self.outcomes: list[Any] = []

    def answer(self, response: Any) -> None:
        self.outcomes.append(response)

    def fail(self, problem: Exception) -> None:
        self.outcomes.append(problem)


class Scene:
    """The end, and what the node has got of it and not answered yet."""

    def __init__(self, *, logs_in: bool = False, served: Any = None, seed: int = 1) -> None:
        self.now_s = 0.0
        self.served = SERVED if served is None else served
        self.end = ClientEnd("node:9092", "me", SETUP_S, self.now_s, random.Random(seed), logs_in=logs_in)
        self.sent: list[Any] = []
        self.take(self.end.on_connected())

    def take(self, parts: list[Any]) -> None:
        """What the end wants to send has come to the node, and who has failed is told."""
        data = b"".join(parts)
        while data:
            size = int.from_bytes(data[:4], "big")
            self.sent.append(decode_request(data[4 : 4 + size]))
            data = data[4 + size :]
        failed, self.end.failed = self.end.failed, []
        for request, problem in failed:
            request.fail(problem)

    def answer(self, response: Message, version: int | None = None) -> None:
        """To the oldest request."""
        header = self.sent.pop(0).header
        version = header.request_api_version if version is None else version
        came = self.end.on_frame(memoryview(encode_response(response, version, header.correlation_id)[4:]), self.now_s)
        if isinstance(came, tuple):
            came[0].answer(came[1])
        else:
            self.take(came)

    def greet(self) -> None:
        self.answer(self.greeting())

    def greeting(self) -> ApiVersionsResponse:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, (oldest, newest) in self.served.items()
        ]
        return ApiVersionsResponse(api_keys=keys)

    def ask(self, request: Told) -> Told:
        self.take(self.end.ask(request, self.now_s))
        return request

    def log_in(self, mechanism: ClientMechanism, *responses: Message) -> None:
        self.end.needs_login = False
        self.take(self.end.log_in(SaslLogin(mechanism), self.now_s))
        for response in responses:
            self.answer(response)

    def pass_time(self, now_s: float) -> None:
        self.now_s = now_s
        try:
            self.end.on_time(now_s)
            self.take(self.end.send_waiting(now_s))
        finally:
            self.take([])

    @property
    def apis(self) -> list[str]:
        return [type(request.message).__name__.removesuffix("Request") for request in self.sent]


def opened(**given: Any) -> Scene:
    scene = Scene(**given)
    scene.greet()
    return scene


def logged_in(session_lifetime_ms: int = 0, seed: int = 1) -> Scene:
    scene = opened(logs_in=True, seed=seed)
    scene.log_in(PLAIN, NAMED, SaslAuthenticateResponse(session_lifetime_ms=session_lifetime_ms))
    return scene


# Coming up


def test_requests_wait_for_the_versions_and_leave_in_order() -> None:
    scene = Scene()
    first, second = scene.ask(Told(MetadataRequest())), scene.ask(Told(ListGroupsRequest(), ApiKey.LIST_GROUPS))
    assert scene.apis == ["ApiVersions"]
    scene.greet()
    assert scene.apis == ["Metadata", "ListGroups"]
    assert [one.header.request_api_version for one in scene.sent] == [12, 3]
    scene.answer(MetadataResponse(cluster_id="x"))
    scene.answer(ListGroupsResponse())
    assert [type(told.outcomes[0]) for told in (first, second)] == [MetadataResponse, ListGroupsResponse]


def test_a_node_too_old_for_our_first_request_is_asked_again_in_its_own_version() -> None:
    """KIP-511: it answers in the oldest version, with the versions of ApiVersions alone."""
    scene = Scene()
    known = ApiVersionsResponse.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
    scene.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known]), version=0)
    assert [one.header.request_api_version for one in scene.sent] == [2]
    scene.greet()
    assert scene.end.state is State.OPEN


def test_what_a_node_serves_comes_once_and_answers_no_other_request() -> None:
    scene = Scene()
    told = scene.ask(Told(MetadataRequest()))
    (asked,) = scene.sent
    scene.greet()
    scene.sent.insert(0, asked)
    with pytest.raises(RemoteProtocolError, match="a response with correlation id 0 where 1 comes next"):
        scene.answer(scene.greeting())
    assert told.outcomes == []


def test_the_answer_to_an_earlier_question_does_not_say_what_a_node_serves() -> None:
    scene = Scene()
    (asked,) = scene.sent
    known = ApiVersionsResponse.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
    scene.answer(refusal, version=0)
    scene.sent.insert(0, asked)
    with pytest.raises(RemoteProtocolError, match="a response with correlation id 0 where 1 comes next"):
        scene.answer(refusal, version=0)


def test_a_node_that_does_not_say_what_it_serves_is_of_no_use() -> None:
    with pytest.raises(Refused, match="CLUSTER_AUTHORIZATION_FAILED"):
        Scene().answer(ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


def test_an_end_that_does_not_open_in_time_is_given_up_whatever_the_time_of_its_requests() -> None:
    scene = Scene()
    scene.ask(Told(MetadataRequest(), dead_s=1.0))
    assert scene.end.next_s() == SETUP_S
    scene.pass_time(SETUP_S - 0.1)
    with pytest.raises(ConnectionFailed, match="cannot get an answer from node:9092 within 10 s"):
        scene.pass_time(SETUP_S)


# Requests


def test_the_version_is_the_newest_that_both_sides_know_and_the_request_allows() -> None:
    scene = opened()
    made_for: list[int] = []

    def make(version: int) -> Message:
        made_for.append(version)
        return MetadataRequest()

    scene.ask(Told(make))
    scene.ask(Told(make, newest=9))
    assert made_for == [one.header.request_api_version for one in scene.sent] == [12, 9]


def test_an_api_that_is_not_served_and_a_field_without_a_place_fail_alone() -> None:
    scene = opened(served={ApiKey.METADATA: (0, 12), ApiKey.LIST_GROUPS: (0, 3)})
    too_new = scene.ask(Told(ListGroupsRequest(states_filter=["Stable"]), ApiKey.LIST_GROUPS))
    absent = scene.ask(Told(ProduceRequest(), ApiKey.PRODUCE))
    too_old = scene.ask(Told(MetadataRequest(), newest=-1))
    assert "states_filter" in str(too_new.outcomes[0])
    assert [type(told.outcomes[0]) for told in (absent, too_old)] == [NotServed, NotServed]
    assert "does not serve PRODUCE" in str(absent.outcomes[0])
    assert scene.sent == []
    scene.ask(Told(MetadataRequest()))
    assert scene.apis == ["Metadata"]


def test_a_response_out_of_order_is_the_nodes_fault() -> None:
    scene = opened()
    scene.ask(Told(MetadataRequest()))
    scene.ask(Told(MetadataRequest()))
    scene.sent.pop(0)
    with pytest.raises(RemoteProtocolError, match="where 1 comes next"):
        scene.answer(MetadataResponse())


def test_a_request_without_a_response_is_over_when_all_of_its_bytes_have_left() -> None:
    scene = opened()
    asked = [Told(ProduceRequest(acks=0), ApiKey.PRODUCE, has_response=False) for _ in range(2)]
    first, second = ([*scene.end.ask(one, 0.0)] for one in asked)
    versions = 1
    assert list(scene.end.left(versions)) == []
    assert len(scene.end) == 2
    assert list(scene.end.left(versions + len(first))) == asked[:1]
    assert list(scene.end.left(versions + len(first) + len(second))) == asked[1:]
    assert len(scene.end) == 0


def test_a_node_that_throttles_is_not_asked_before_its_time() -> None:
    """KIP-219."""
    scene = opened()
    scene.ask(Told(MetadataRequest()))
    scene.answer(MetadataResponse(throttle_time_ms=500))
    scene.now_s = 0.1
    scene.ask(Told(MetadataRequest()))
    assert (scene.apis, scene.end.next_s()) == ([], 0.5)
    scene.pass_time(0.5)
    assert scene.apis == ["Metadata"]


# Deadlines


def test_a_request_that_is_late_fails_alone_and_its_response_is_nobodys_loss() -> None:
    scene = opened()
    late = scene.ask(Told(MetadataRequest(), due_s=1.0, dead_s=30.0))
    behind = scene.ask(Told(MetadataRequest(), due_s=20.0, dead_s=30.0))
    assert scene.end.next_s() == 1.0
    scene.pass_time(1.0)
    assert [type(one) for one in late.outcomes] == [RequestLate]
    assert scene.end.next_s() == 20.0
    scene.answer(MetadataResponse())
    scene.answer(MetadataResponse())
    assert len(behind.outcomes) == 1


def test_a_request_that_is_late_before_it_could_leave_does_not_leave() -> None:
    scene = Scene()
    late = scene.ask(Told(MetadataRequest(), due_s=1.0, dead_s=30.0))
    scene.pass_time(1.0)
    assert [type(one) for one in late.outcomes] == [RequestLate]
    scene.greet()
    assert scene.apis == []


def test_a_connection_is_given_up_for_a_request_that_is_not_answered() -> None:
    scene = opened()
    scene.ask(Told(MetadataRequest(), dead_s=3.0))
    patient = scene.ask(Told(MetadataRequest(), dead_s=9.0))
    scene.pass_time(2.9)
    with pytest.raises(NoAnswer, match="node:9092 did not answer a request in time"):
        scene.pass_time(3.0)
    assert patient in scene.end.close()
    assert (len(scene.end), scene.end.state) == (0, State.CLOSED)


# Logging in


def test_the_mechanism_is_named_first_and_then_the_password_is_sent() -> None:
    scene = opened(logs_in=True)
    waiting = scene.ask(Told(MetadataRequest()))
    assert (scene.end.needs_login, scene.apis) == (True, [])
    scene.log_in(PLAIN)
    (handshake,) = scene.sent
    assert isinstance(handshake.message, SaslHandshakeRequest)
    assert (handshake.message.mechanism, handshake.header.request_api_version) == ("PLAIN", 1)
    scene.answer(NAMED)
    (token,) = scene.sent
    assert isinstance(token.message, SaslAuthenticateRequest)
    assert (token.message.auth_bytes, token.header.request_api_version) == (b"\0alice\0hunter2", 2)
    scene.answer(SaslAuthenticateResponse())
    assert (scene.apis, waiting.outcomes) == (["Metadata"], [])
    assert scene.end.next_s() == NEVER


def refused(mechanism: ClientMechanism, *responses: Message, served: Any = None) -> Refused:
    scene = opened(logs_in=True, served=served)
    with pytest.raises(Refused) as raised:
        scene.log_in(mechanism, *responses)
    return raised.value


def test_the_nodes_words_are_told_and_ours_are_not() -> None:
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    problem = refused(PLAIN, NAMED, SaslAuthenticateResponse(error_code=code, error_message="go away"))
    assert (problem.code, problem.message) == (code, "go away")


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    problem = refused(PLAIN, SaslHandshakeResponse(error_code=code, mechanisms=["GSSAPI", "SCRAM-SHA-256"]))
    assert problem.code == code
    assert "does not have the mechanism PLAIN; it has GSSAPI, SCRAM-SHA-256" in str(problem)


def test_a_listener_without_sasl_is_told() -> None:
    problem = refused(PLAIN, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
    assert "does not use SASL" in str(problem)


@pytest.mark.parametrize("auth_bytes", [b"", b"r=mine,s=c2FsdA==,i=4096"])
def test_a_node_that_cannot_prove_that_it_knows_the_password_is_not_believed(auth_bytes: bytes) -> None:
    """What answers without a signature may be anything that has taken the node's address."""
    mechanism = ScramClient("SCRAM-SHA-256", "alice", "hunter2", "nonce")
    problem = refused(mechanism, NAMED, SaslAuthenticateResponse(auth_bytes=auth_bytes))
    assert problem.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "cannot be trusted" in str(problem)


@pytest.mark.parametrize("authenticates", [{}, {ApiKey.SASL_AUTHENTICATE: (0, 2)}])
def test_a_node_whose_tokens_go_without_headers_is_refused(authenticates: dict[int, tuple[int, int]]) -> None:
    served = {ApiKey.SASL_HANDSHAKE: (0, 0 if authenticates else 1), **authenticates}
    assert "older than Kafka 1.0" in str(refused(PLAIN, served=served))


@pytest.mark.slow
def test_a_session_is_renewed_late_in_its_life_and_not_by_all_clients_at_once() -> None:
    """KIP-368: after 85 to 95 hundredths of it."""
    moments = []
    for seed in range(20):
        scene = logged_in(session_lifetime_ms=10_000, seed=seed)
        scene.now_s = next(ms / 1000 for ms in range(10_001) if _begins_login(scene, ms / 1000))
        moments.append(scene.now_s)
    assert all(8.5 <= moment <= 9.5 for moment in moments)
    assert len(set(moments)) > 10


def _begins_login(scene: Scene, now_s: float) -> bool:
    scene.now_s = now_s
    scene.ask(Told(MetadataRequest()))
    if scene.sent:
        scene.answer(MetadataResponse())
    return scene.end.needs_login


def test_a_session_is_renewed_by_a_request_and_by_no_timer() -> None:
    scene = logged_in(session_lifetime_ms=10_000)
    assert scene.end.next_s() == NEVER, "an idle connection stays idle"
    before = scene.ask(Told(MetadataRequest()))
    scene.now_s = 12.0
    after = scene.ask(Told(ListGroupsRequest(), ApiKey.LIST_GROUPS))
    assert (scene.end.needs_login, scene.apis) == (True, ["Metadata"])
    scene.log_in(PLAIN)
    assert scene.apis == ["Metadata", "SaslHandshake"]
    for response in (MetadataResponse(), NAMED, SaslAuthenticateResponse(session_lifetime_ms=10_000)):
        scene.answer(response)
    assert (len(before.outcomes), after.outcomes, scene.apis) == (1, [], ["ListGroups"])
    scene.now_s = 20.0
    scene.ask(Told(MetadataRequest()))
    assert not scene.end.needs_login, "the time counts from the last login"


def test_another_login_has_a_time_too() -> None:
    scene = logged_in(session_lifetime_ms=10_000)
    scene.now_s = 12.0
    scene.ask(Told(MetadataRequest()))
    assert scene.end.next_s() == 12.0 + SETUP_S
    with pytest.raises(ConnectionFailed, match="cannot get an answer from"):
        scene.pass_time(12.0 + SETUP_S)
