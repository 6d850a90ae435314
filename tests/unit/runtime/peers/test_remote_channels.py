"""The channels that cross connections keep the contract of `ottla.runtime.channels`."""

from typing import Any

from ottla.base.ids import ZERO_UUID
from ottla.runtime.channels import THIS_NODE, Caller, Failed, Then
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.peers.remote_controller import ActiveController, RemoteController
from ottla.runtime.peers.remote_peers import RemotePeers
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_request, encode_response
from ottla.wire.message import Message
from ottla.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    EnvelopeResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.unit.runtime.peers.two_nodes import ADDRESS, TwoNodes

HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=7)
TWO = ActiveController(2, ADDRESS)
CLIENT = Caller("User:alice", "10.1.2.3")


class Own:
    """A controller or a broker in the asking process."""

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.error: ErrorCode | None = None

    def ask(self, *asked: Any) -> None:
        request, then, failed = asked[-4], asked[-2], asked[-1]
        self.asked.append(request)
        if self.error is not None:
            failed(self.error)
        else:
            then("from its own process")


class OwnController(Own):
    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        super().ask(request, version, then, failed)


class Asking:
    def __init__(self, active: ActiveController | None = TWO) -> None:
        self.nodes = TwoNodes()
        self.active = active
        self.own = OwnController()
        self.controller = RemoteController(
            self.nodes.world, self.nodes.connections, node_id=1, own=self.own, find=lambda: self.active
        )

    def ask(self, request: Message = HEARTBEAT, version: int = 1, caller: Caller = THIS_NODE) -> None:
        self.controller.ask(request, version, caller, self.nodes.then, self.nodes.failed)
        self.nodes.run()


def test_a_nodes_own_request_goes_to_the_controller_as_it_is() -> None:
    asking = Asking()
    asking.ask()
    asking.nodes.answer(BrokerHeartbeatResponse(is_caught_up=True))
    assert asking.nodes.told[0].is_caught_up


def test_a_clients_request_goes_in_an_envelope_with_its_principal_and_address() -> None:
    asking = Asking()
    asking.ask(CreateTopicsRequest(timeout_ms=1000), 7, CLIENT)
    _, envelope, _ = asking.nodes.waiting[0]
    inside = decode_request(envelope.request_data)
    assert (inside.header.request_api_key, inside.header.request_api_version) == (ApiKey.CREATE_TOPICS, 7)
    assert bytes(envelope.client_host_address) == bytes([10, 1, 2, 3])
    assert b"alice" in bytes(envelope.request_principal)
    reply = CreateTopicsResponse(
        topics=[CreateTopicsResponse.CreatableTopicResult(name="a", topic_id=ZERO_UUID, error_code=36)]
    )
    asking.nodes.answer(EnvelopeResponse(response_data=encode_response(reply, 7, 0)[4:]))
    assert asking.nodes.told[0].topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_controller_in_the_same_process_is_asked_there() -> None:
    asking = Asking(ActiveController(1, NodeAddress("one", 9092)))
    asking.ask()
    assert asking.nodes.told == ["from its own process"]


def test_a_request_waits_until_a_controller_is_known() -> None:
    asking = Asking(None)
    asking.ask()
    asking.nodes.advance(200)
    assert asking.nodes.told == []
    asking.active = TWO
    asking.nodes.advance(100)
    asking.nodes.answer(BrokerHeartbeatResponse())
    assert len(asking.nodes.told) == 1


def test_a_controller_that_has_moved_is_found_and_asked_again() -> None:
    asking = Asking()
    asking.ask()
    asking.nodes.answer(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    asking.active = ActiveController(1, NodeAddress("one", 9092))
    asking.nodes.advance(100)
    assert asking.nodes.told == ["from its own process"]


def test_a_controller_that_does_not_answer_is_not_waited_for_when_another_leads() -> None:
    asking = Asking()
    asking.ask()
    asking.active = None
    asking.nodes.advance(1_000)
    assert asking.nodes.told == []
    asking.active = ActiveController(1, NodeAddress("one", 9092))
    asking.nodes.advance(1_000)
    assert asking.nodes.told == ["from its own process"]
    asking.nodes.answer(BrokerHeartbeatResponse())
    assert len(asking.nodes.told) == 1, "an answer that comes late is nobody's"


def test_not_controller_on_an_envelope_and_a_lost_connection_are_the_same() -> None:
    asking = Asking()
    asking.ask(CreateTopicsRequest(timeout_ms=5000), 7, CLIENT)
    asking.nodes.answer(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
    asking.nodes.advance(100)
    assert len(asking.nodes.waiting) == 1, "not sent again"
    asking.nodes.stop_other()
    asking.nodes.waiting.clear()
    asking.nodes.start_other()
    asking.nodes.advance(300)
    assert len(asking.nodes.waiting) == 1, "not sent again"
    assert asking.nodes.told == []


def test_a_request_gives_up_when_its_own_time_is_over() -> None:
    asking = Asking(None)
    asking.ask(CreateTopicsRequest(timeout_ms=300), 7, CLIENT)
    asking.nodes.advance(301)
    assert asking.nodes.told == [ErrorCode.REQUEST_TIMED_OUT]
    asking.active = TWO
    asking.ask()
    asking.nodes.advance(30_001)
    assert asking.nodes.told[1:] == [ErrorCode.REQUEST_TIMED_OUT]


def test_other_errors_are_the_askers_to_hear() -> None:
    asking = Asking()
    asking.nodes.served[ApiKey.BROKER_HEARTBEAT] = (9, 9)
    asking.ask()
    assert asking.nodes.told == [ErrorCode.UNSUPPORTED_VERSION]


def test_a_peer_is_asked_once() -> None:
    nodes = TwoNodes()
    own = Own()
    peers = RemotePeers(1, own, nodes.connections, {2: ADDRESS}.get)
    request = MetadataRequest()
    peers.ask(2, request, 12, nodes.then, nodes.failed)
    nodes.run()
    nodes.answer(MetadataResponse(cluster_id="two"))
    peers.ask(1, request, 12, nodes.then, nodes.failed)
    peers.ask(3, request, 12, nodes.then, nodes.failed)
    assert [getattr(told, "cluster_id", told) for told in nodes.told] == [
        "two",
        "from its own process",
        ErrorCode.NETWORK_EXCEPTION,
    ]
    peers.ask(2, request, 12, nodes.then, nodes.failed)
    nodes.run()
    nodes.stop_other()
    assert nodes.told[3:] == [ErrorCode.NETWORK_EXCEPTION]
