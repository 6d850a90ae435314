"""One bad request costs one request, at worst one connection; the others do not notice."""

import logging

import pytest

from ottla.runtime.attribution import attributed, current
from ottla.runtime.request import RefusedRequest
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from tests.unit.runtime.memory_server import Scene

METADATA = MetadataRequest(topics=[]), 12
JOIN = JoinGroupRequest(group_id="g"), 9
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


class Bug(Exception):
    """What nobody expected."""


def answering(context, message, respond) -> None:
    """Joining breaks, everything else is fine."""
    if isinstance(message, JoinGroupRequest):
        raise Bug("a broken invariant")
    respond(MetadataResponse(cluster_id="fine"))


def test_an_exception_in_a_handler_is_answered_and_logged_once_with_the_client_and_the_request(caplog) -> None:
    scene = Scene()
    scene.handle = answering
    client, other = scene.connect(), scene.connect()
    client.ask(METADATA, JOIN, METADATA)
    other.ask(METADATA)
    replies = client.replies()
    assert [asked for asked, _ in replies] == [0, 1, 2]
    assert replies[1][1].error_code == FAILED
    assert replies[2][1].cluster_id == "fine"
    assert len(other.replies()) == 1
    [logged] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "JoinGroup version 9 of client 'client' from 127.0.0.1" in logged.getMessage()
    assert logged.exc_info[0] is Bug
    assert scene.metrics.faults == {"JoinGroup": 1}
    assert scene.server._queued_bytes == 0


def test_a_client_that_breaks_the_same_thing_again_and_again_is_counted_and_logged_once_a_minute(caplog) -> None:
    scene = Scene()
    scene.handle = answering
    client = scene.connect()
    for _ in range(500):
        client.ask(JOIN)
    assert len(client.replies()) == 500
    assert scene.metrics.faults == {"JoinGroup": 500}
    assert len(caplog.records) == 1
    scene.timers.advance(60_000)
    client.ask(JOIN)
    assert "(499 more like it in the last 60 s)" in caplog.records[-1].getMessage()


def test_a_client_that_sends_rubbish_again_and_again_is_counted_and_logged_a_few_times(caplog) -> None:
    scene = Scene()
    with caplog.at_level(logging.INFO):
        for _ in range(500):
            scene.connect().end.send(b"\x00\x00\x00\x04rubb")
            scene.network.run()
    assert sum(scene.metrics.refused.values()) == 500
    assert len(caplog.records) == 10


def test_an_exception_closes_the_connection_where_the_api_has_no_place_for_an_error() -> None:
    scene = Scene()

    def handle(context, message, respond) -> None:
        raise Bug

    scene.handle = handle
    client, other = scene.connect(), scene.connect()
    client.ask((ProduceRequest(acks=0), 9))
    assert client.end.is_closed
    assert not other.end.is_closed
    assert current() is None


def test_an_exception_in_a_version_that_is_not_known_closes_the_connection() -> None:
    scene = Scene()

    def handle(context, message, respond) -> None:
        raise Bug

    scene.handle = handle
    client = scene.connect()
    request = bytearray(client.bytes_of((ApiVersionsRequest(), 0)))
    request[6:8] = (999).to_bytes(2, "big")
    client.end.send(request)
    scene.network.run()
    assert client.end.is_closed


def test_a_reply_that_cannot_be_encoded_becomes_one_that_says_so() -> None:
    """The topic's name is echoed, and the message about it is longer than a string may be."""
    scene = Scene()

    def handle(context, message, respond) -> None:
        name = message.topics[0].name
        result = CreateTopicsResponse.CreatableTopicResult(name=name, error_message=f"{name} is too long")
        respond(CreateTopicsResponse(topics=[result]))

    scene.handle = handle
    client = scene.connect()
    topics = [CreateTopicsRequest.CreatableTopic(name="t" * 32_767)]
    client.ask((CreateTopicsRequest(topics=topics), 4))
    [(_, reply)] = client.replies()
    assert (reply.topics[0].name, reply.topics[0].error_code) == ("t" * 32_767, FAILED)


def test_a_second_reply_and_one_after_a_fault_change_nothing(caplog) -> None:
    scene = Scene()

    def handle(context, message, respond) -> None:
        respond(MetadataResponse(cluster_id="first"))
        respond(MetadataResponse(cluster_id="second"))
        if context.correlation_id == 1:
            raise Bug("after the reply")

    scene.handle = handle
    client = scene.connect()
    client.ask(METADATA, METADATA, METADATA)
    assert [reply.cluster_id for _, reply in client.replies()] == ["first"] * 3
    assert scene.metrics.faults == {"Metadata": 4}

    scene.handle = scene.wait
    client.ask(JOIN)
    context, _, respond = scene.waiting[0]
    context.fail(Bug("found out later"))
    respond(JoinGroupResponse(member_id="late"))
    client.ask(METADATA)
    scene.waiting[1][2](MetadataResponse(cluster_id="fine"))
    scene.network.run()
    [(_, failed), (_, fine)] = client.replies()
    assert (failed.error_code, fine.cluster_id) == (FAILED, "fine")
    assert scene.server._queued_bytes == 0


def test_what_was_parked_for_later_fails_its_own_request() -> None:
    scene = Scene()
    parked = []

    def handle(context, message, respond) -> None:
        def later() -> None:
            raise Bug("later")

        parked.append(attributed(later))

    scene.handle = handle
    client, other = scene.connect(), scene.connect()
    client.ask(JOIN)
    other.ask(JOIN)
    parked[0]()
    scene.network.run()
    assert [reply.error_code for _, reply in client.replies()] == [FAILED]
    assert not other.replies()


def test_a_request_that_is_too_large_to_be_repeated_is_not_kept_and_hung_up_on_if_it_fails() -> None:
    scene = Scene(pipe_bytes=8 << 20)
    client, other = scene.connect(), scene.connect()
    partitions = [ProduceRequest.PartitionProduceData(index=3, records=bytes(5 << 20))]
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=partitions)]
    client.ask((ProduceRequest(acks=-1, topic_data=topics), 9))
    context = scene.waiting[0][0]
    assert context.message is None
    context.fail(Bug())
    scene.network.run()
    assert client.end.is_closed
    assert not other.end.is_closed


def test_a_request_that_fails_lets_go_of_the_connection_that_it_holds() -> None:
    scene = Scene()

    def handle(context, message, respond) -> None:
        scene.wait(context, message, respond)
        if context.correlation_id == 0:
            context.connection.pause()

    scene.handle = handle
    client = scene.connect()
    client.ask(JOIN, METADATA)
    assert len(scene.waiting) == 1
    scene.waiting[0][0].fail(Bug())
    scene.network.run()
    assert len(scene.waiting) == 2


@pytest.mark.parametrize("is_later", [False, True])
def test_a_refusal_hangs_up_without_being_a_fault(is_later: bool) -> None:
    scene = Scene()

    def handle(context, message, respond) -> None:
        def refuse() -> None:
            raise RefusedRequest("not to this client")

        if is_later:
            scene.waiting.append((context, message, attributed(refuse)))
        else:
            refuse()

    scene.handle = handle
    client = scene.connect()
    client.ask(JOIN)
    for _, _, refuse_later in scene.waiting:
        refuse_later()
    assert client.end.is_closed
    assert not scene.metrics.faults
    assert scene.metrics.refused == {"RefusedRequest": 1}


@pytest.mark.parametrize("bad", [b"\x00\x00\x00\x04rubb", b"\xff\xff\xff\xff"])
def test_replies_that_are_ready_leave_before_the_connection_of_a_bad_request_is_closed(bad: bytes) -> None:
    scene = Scene()
    scene.handle = answering
    client = scene.connect()
    client.end.send(client.bytes_of(METADATA, METADATA) + bad)
    scene.network.run()
    assert [asked for asked, _ in client.replies()] == [0, 1]
    assert client.end.is_closed


def test_a_timer_that_breaks_fails_the_request_that_set_it() -> None:
    scene = Scene()
    timers = StepTimers(FixedClock())

    def handle(context, message, respond) -> None:
        def later() -> None:
            raise Bug("too late")

        timers.after(1.0, later)

    scene.handle = handle
    client = scene.connect()
    client.ask(JOIN)
    timers.advance(1000)
    scene.network.run()
    assert [reply.error_code for _, reply in client.replies()] == [FAILED]
    assert current() is None


def test_a_connection_that_breaks_while_it_sends_keeps_no_other_from_sending(monkeypatch) -> None:
    scene = Scene()
    broken, other = scene.connect(), scene.connect()
    for client in (broken, other):
        client.ask(METADATA)
    first = next(iter(scene.server.connections))

    def breaks(_: bytes) -> int:
        raise Bug("in the transport")

    monkeypatch.setattr(first._transport, "send", breaks)
    for _, _, respond in scene.waiting:
        respond(MetadataResponse())
    scene.network.run()
    assert broken.end.is_closed
    assert len(other.replies()) == 1
    assert scene.metrics.faults == {"connection": 1}
