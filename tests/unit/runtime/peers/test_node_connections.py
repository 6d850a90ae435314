"""Connections between nodes: order, versions, time, broken connections, and the end."""

import logging

import pytest

from ottla.runtime.peers.node_connections import ConnectionName, NodeAddress
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_response
from ottla.wire.messages import (
    CreateTopicsRequest,
    MetadataRequest,
    MetadataResponse,
)
from tests.unit.runtime.peers.two_nodes import ADDRESS, TwoNodes
from tests.unit.runtime.raising_once import Fault, faults_in

LINE = ConnectionName(2, "peer")


def ask(nodes: TwoNodes, version: int = 12, timeout_ms: float | None = None, address: NodeAddress = ADDRESS) -> None:
    nodes.connections.ask(
        LINE, address, MetadataRequest(), version, then=nodes.then, failed=nodes.failed, timeout_ms=timeout_ms
    )
    nodes.run()


def test_requests_arrive_in_the_order_in_which_they_were_asked_and_hear_their_own_replies() -> None:
    nodes = TwoNodes()
    for _ in range(3):
        ask(nodes)
    assert [context.client_id for context, *_ in nodes.waiting] == ["1-peer"] * 3
    for name in ("a", "b", "c"):
        nodes.answer(MetadataResponse(cluster_id=name))
    assert [reply.cluster_id for reply in nodes.told] == ["a", "b", "c"]


def test_a_request_goes_in_the_highest_version_that_both_serve_and_the_asker_allows() -> None:
    nodes = TwoNodes()
    nodes.served[ApiKey.METADATA] = (0, 11)
    ask(nodes, version=12)
    ask(nodes, version=9)
    assert [context.api_version for context, *_ in nodes.waiting] == [11, 9]


def test_an_api_that_the_other_node_does_not_serve_fails_and_the_connection_stays() -> None:
    nodes = TwoNodes()
    request = CreateTopicsRequest()
    nodes.connections.ask(LINE, ADDRESS, request, 7, then=nodes.then, failed=nodes.failed)
    nodes.run()
    assert nodes.told == [ErrorCode.UNSUPPORTED_VERSION]
    ask(nodes)
    assert len(nodes.waiting) == 1


def test_a_lost_connection_fails_what_was_asked_and_the_next_request_waits_for_the_pause() -> None:
    nodes = TwoNodes()
    ask(nodes)
    nodes.stop_other()
    assert nodes.told == [ErrorCode.NETWORK_EXCEPTION]
    nodes.start_other()
    nodes.waiting.clear()
    ask(nodes)
    assert not nodes.waiting, "asked again without a pause"
    nodes.advance(100)
    nodes.answer(MetadataResponse(cluster_id="again"))
    assert nodes.told[-1].cluster_id == "again"


def test_a_node_that_answers_twice_loses_its_connection_and_that_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = TwoNodes()
    ask(nodes)
    ((context, *_),) = nodes.waiting
    nodes.answer(MetadataResponse(cluster_id="once"))
    twice = encode_response(MetadataResponse(cluster_id="twice"), context.api_version, context.correlation_id)
    with caplog.at_level(logging.WARNING):
        assert nodes.server is not None
        (connection,) = nodes.server.connections
        connection._transport.send(twice)
        nodes.run()
    assert not nodes.connections.is_open(LINE)
    assert [line.getMessage() for line in caplog.records] == [
        "node 2 (peer): two:9092 broke the protocol: a response with correlation id 1 that nobody asked for"
    ]
    ask(nodes)
    nodes.advance(100)
    nodes.answer(MetadataResponse(cluster_id="again"))
    assert [reply.cluster_id for reply in nodes.told] == ["once", "again"]


def test_pauses_grow_while_the_other_node_cannot_be_reached() -> None:
    nodes = TwoNodes()
    nodes.stop_other()
    waits = []
    for _ in range(6):
        asked_s, count = nodes.timers.now_s(), len(nodes.told)
        ask(nodes)
        while len(nodes.told) == count:
            nodes.advance(5)
        waits.append(nodes.timers.now_s() - asked_s)
    assert waits[0] == 0
    assert waits[1] < 0.1 < waits[3]
    assert 0.7 < waits[5] < 1.3
    assert set(nodes.told) == {ErrorCode.NETWORK_EXCEPTION}


def test_a_request_whose_time_is_over_fails_and_its_late_reply_is_dropped() -> None:
    nodes = TwoNodes()
    ask(nodes, timeout_ms=100)
    ask(nodes)
    nodes.advance(150)
    assert nodes.told == [ErrorCode.REQUEST_TIMED_OUT]
    nodes.answer(MetadataResponse(cluster_id="late"))
    nodes.answer(MetadataResponse(cluster_id="in time"))
    assert [getattr(reply, "cluster_id", reply) for reply in nodes.told] == [ErrorCode.REQUEST_TIMED_OUT, "in time"]


def test_a_node_that_does_not_answer_for_the_request_timeout_loses_its_connection() -> None:
    nodes = TwoNodes(request_timeout_ms=1000)
    ask(nodes)
    nodes.advance(500)
    ask(nodes)
    nodes.advance(600)
    assert nodes.told == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION]
    assert not nodes.connections.is_open(LINE)


def test_a_host_that_takes_the_connection_and_says_nothing_is_given_up() -> None:
    nodes = TwoNodes()
    assert nodes.server is not None
    nodes.server.stop_listening()
    nodes.there.listen("two", 9092, backlog=1, receive_buffer_bytes=-1, send_buffer_bytes=-1)
    ask(nodes)
    nodes.advance(10_001)
    assert nodes.told == [ErrorCode.NETWORK_EXCEPTION]


def test_a_node_that_moves_is_asked_at_its_new_address() -> None:
    nodes = TwoNodes()
    ask(nodes)
    assert nodes.server is not None
    nodes.server.listen("two", 9093, "PLAINTEXT")
    nodes.server.start_accepting()
    ask(nodes, address=NodeAddress("two", 9093))
    assert nodes.told == [ErrorCode.NETWORK_EXCEPTION]
    assert len(nodes.waiting) == 2


def test_a_node_that_stops_forgets_what_it_asked_and_leaves_no_timer() -> None:
    nodes = TwoNodes()
    ask(nodes)
    before = len(nodes.timers)
    nodes.connections.close()
    nodes.run()
    assert len(nodes.timers) < before
    ask(nodes)
    nodes.advance(60_000)
    assert nodes.told == []


def test_many_requests_are_taken_through_a_narrow_pipe_whole() -> None:
    nodes = TwoNodes()
    names = [MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(1000)]
    nodes.connections.ask(LINE, ADDRESS, MetadataRequest(topics=names), 12, then=nodes.then, failed=nodes.failed)
    nodes.run()
    assert len(nodes.waiting[0][1].topics) == 1000


def test_a_reply_that_raises_costs_neither_the_connection_nor_those_behind_it() -> None:
    nodes = TwoNodes()

    def broken(_reply: object) -> None:
        raise Fault

    nodes.connections.ask(LINE, ADDRESS, MetadataRequest(), 12, then=broken, failed=nodes.failed)
    ask(nodes)
    for _ in range(2):
        nodes.answer(MetadataResponse())
    assert [type(reply) for reply in nodes.told] == [MetadataResponse]
    assert nodes.connections.is_open(LINE)
    assert faults_in(lambda: nodes.advance(0)) == 1, "it reaches the loop"


def test_a_failure_that_raises_keeps_no_other_from_being_heard() -> None:
    nodes = TwoNodes()

    def broken(_error: ErrorCode) -> None:
        raise Fault

    nodes.connections.ask(LINE, ADDRESS, MetadataRequest(), 12, then=nodes.then, failed=broken)
    ask(nodes)
    nodes.stop_other()
    assert nodes.told == [ErrorCode.NETWORK_EXCEPTION]
    assert faults_in(lambda: nodes.advance(0)) == 1
