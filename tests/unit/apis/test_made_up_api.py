"""An API that is added in one place, the table of rows, is served, checked, counted, divided, failed and advertised.

Its messages are those of DeleteShareGroupOffsets, which nothing here serves: a group, and a list of topics.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.apis.description import Answer, Answers, Division, Entries, ErrorReply, NamedTopics, ServedApi
from ottla.apis.table import APIS, FORWARDED
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.decision import Decision
from ottla.node.faults.commands import Commands
from ottla.node.faults.parameters import Parameters
from ottla.node.faults.request_faults import RequestFaults
from ottla.runtime.channels import Failed, Then
from ottla.runtime.request import RequestContext, Respond
from ottla.security.api_access import ALTER, Access, Quota
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_request
from ottla.wire.messages import AlterClientQuotasRequest, ApiVersionsRequest, DescribeClusterRequest
from ottla.wire.messages import DeleteShareGroupOffsetsRequest as Request
from ottla.wire.messages import DeleteShareGroupOffsetsResponse as Response
from tests.golden.access.guarded_nodes import ADMIN, GuardedNode
from tests.unit.node.whole_nodes import COMBINED, CONTROLLER_PORT, PORT, WholeNode

KEY = ApiKey.DELETE_SHARE_GROUP_OFFSETS
MADE_UP = ServedApi(
    KEY,
    Access((ALTER,)),
    broker=Answer(f"{__name__}:handle"),
    controller=Answer(f"{__name__}:answer"),
    may_be_forwarded=True,
    errors=ErrorReply((Entries("responses", "topics", {"topic_name": "topic_name"}),)),
    divisions=(Division(("topics",), (Answers("responses"),)),),
    topics=NamedTopics(outcomes="responses"),
)
DECIDED = MADE_UP._replace(
    access=Access((ALTER,), Quota.CONTROLLER_MUTATION),
    broker=FORWARDED,
    controller=Answer("ottla.controller.mutation_quotas:decide_counted"),
    strict_since=0,
    decision=f"{__name__}:decide",
)
handled: list[Any] = []


def handle(has_authorizer: bool, _context: RequestContext, request: Request, respond: Respond) -> None:
    """A broker's handler, with one of its services."""
    if request.group_id == "breaks":
        raise AssertionError("a handler that is broken")
    handled.append(request)
    respond(replied(request, f"by a broker, authorizer {has_authorizer}"))


def answer(_server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    handled.append(asked.request)
    then(replied(asked.request, f"by a controller, to {asked.caller.principal}"))


def decide(context: Any, request: Request) -> Decision[Response]:
    reply = replied(request, "decided")
    for topic in reply.responses:
        if not context.admit(1):
            topic.error_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return Decision(reply, [])


def replied(request: Request, words: str) -> Response:
    topics = [Response.DeleteShareGroupOffsetsResponseTopic(topic_name=one.topic_name) for one in request.topics]
    return Response(error_message=words, responses=topics)


def asking(*names: str, group_id: str = "g") -> Request:
    topic = Request.DeleteShareGroupOffsetsRequestTopic
    return Request(group_id=group_id, topics=[topic(topic_name=name) for name in names])


def outcomes(reply: Response) -> dict[str, int]:
    return {topic.topic_name: topic.error_code for topic in reply.responses}


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one place."""
    handled.clear()
    monkeypatch.setitem(APIS, KEY, MADE_UP)


@pytest.mark.parametrize("port", [PORT, CONTROLLER_PORT])
def test_it_is_advertised(port: int) -> None:
    def advertised() -> list[tuple[int, int, int]]:
        reply = WholeNode(COMBINED).ask(ApiVersionsRequest(), 0, port)
        return [(one.api_key, one.min_version, one.max_version) for one in reply.api_keys]

    assert (KEY, 0, 0) in advertised()
    del APIS[KEY]
    assert KEY not in [key for key, _, _ in advertised()]


def test_it_is_served_by_brokers_and_controllers() -> None:
    node = WholeNode(COMBINED)
    assert node.ask(asking("a"), 0, PORT).error_message == "by a broker, authorizer False"
    assert node.ask(asking("a"), 0, CONTROLLER_PORT).error_message == "by a controller, to User:ANONYMOUS"


def test_without_its_row_it_is_served_by_nobody() -> None:
    node = WholeNode(COMBINED)
    del APIS[KEY]
    for port in (PORT, CONTROLLER_PORT):
        client = node.connect(port)
        client.send(encode_request(asking("a"), 0, 7, "the test"))
        node.network.run()
        assert client.is_closed


def test_it_is_forwarded_to_the_controller_and_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APIS, KEY, DECIDED)
    assert WholeNode(COMBINED).ask(asking("a"), 0, PORT).error_message == "decided"


@pytest.mark.parametrize("to_controller", [False, True])
def test_it_is_refused_to_a_client_without_the_right(to_controller: bool) -> None:
    node = GuardedNode()
    refused = node.ask(asking("a"), 0, to_controller=to_controller, principal="User:eve")
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert refused.error_message == f"Request {KEY.name} of User:eve from 127.0.0.1 needs ALTER permission."
    assert outcomes(refused) == {"a": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert not handled
    assert outcomes(node.ask(asking("a"), 0, to_controller=to_controller, principal=ADMIN)) == {"a": 0}


def set_quota(node: WholeNode, key: str, per_second: float) -> None:
    entity = [AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="the test")]
    ops = [AlterClientQuotasRequest.OpData(key=key, value=per_second)]
    entry = AlterClientQuotasRequest.EntryData(entity=entity, ops=ops)
    node.ask(AlterClientQuotasRequest(entries=[entry]), 1, PORT)


@pytest.mark.parametrize(("quota", "counts"), [(Quota.PRODUCE, True), (Quota.REQUEST, False)])
def test_it_is_counted_against_what_its_row_says(quota: Quota, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APIS, KEY, MADE_UP._replace(access=Access((ALTER,), quota)))
    node = WholeNode(COMBINED)
    set_quota(node, "producer_byte_rate", 1.0)
    assert (node.ask(asking("a" * 200), 0, PORT).throttle_time_ms > 0) == counts


def test_it_is_counted_as_a_change_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APIS, KEY, DECIDED)
    node = WholeNode(COMBINED)
    set_quota(node, "controller_mutation_rate", 0.01)
    names = [f"t{number}" for number in range(9)]
    reply = node.ask(asking(*names), 0, PORT)
    assert set(outcomes(reply).values()) == {0, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert reply.throttle_time_ms > 0


@pytest.mark.parametrize("port", [PORT, CONTROLLER_PORT])
def test_a_huge_one_is_divided(port: int) -> None:
    names = [f"topic-{number}" for number in range(1200)]
    reply = WholeNode(COMBINED).ask(asking(*names), 0, port)
    assert [topic.topic_name for topic in reply.responses] == names
    assert [len(part.topics) for part in handled] == [100] * 12


def test_it_is_failed_by_a_fault_for_the_topic_that_the_fault_names() -> None:
    node = WholeNode(COMBINED)
    server, broker = node.node._server, node.node.broker
    assert server is not None
    assert broker is not None
    faults = RequestFaults(server.handle, broker, node.timers)
    server.handle = faults.handle
    commands = Commands(SimpleNamespace(requests=faults))  # type: ignore[arg-type]
    given = {"api": "DeleteShareGroupOffsets", "error": "NOT_COORDINATOR", "topic": "b"}
    commands.find("fail_next")(Parameters(given))
    assert node.ask(DescribeClusterRequest(), 0, PORT).error_code == 0
    assert outcomes(node.ask(asking("a", "b"), 0, PORT)) == {"a": 0, "b": ErrorCode.NOT_COORDINATOR}
    assert [topic.topic_name for topic in handled[0].topics] == ["a"]
    assert outcomes(node.ask(asking("a", "b"), 0, PORT)) == {"a": 0, "b": 0}


def test_a_handler_that_breaks_is_told_of_in_every_entry() -> None:
    reply = WholeNode(COMBINED).ask(asking("a", "b", group_id="breaks"), 0, PORT)
    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert outcomes(reply) == {"a": -1, "b": -1}
