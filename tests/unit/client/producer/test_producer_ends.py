"""Batches are settled once, in order, and memory stays bounded, whatever ends them."""

from typing import Any

import pytest

from ottla.client.errors import ClientClosed, ClusterAuthorizationFailed, DeliveryTimedOut, MessageTooLarge
from ottla.client.promise import Promise
from ottla.testing.scripted_brokers import DROP, KEEP, ScriptedBrokers, ScriptedTransport
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceResponse
from tests.unit.client.producer.written_logs import Producing, WrittenLogs, error_of, refusing


def begun(nodes: tuple[int, ...] = (1,), partitions: int = 1, **settings: object) -> tuple[Producing, WrittenLogs]:
    brokers = ScriptedBrokers(nodes, {"clicks": partitions})
    logs = WrittenLogs(brokers)
    return Producing(brokers, **{"linger_ms": 0, **settings}), logs


def test_an_error_that_ends_the_producer_settles_each_batch_once() -> None:
    producing, logs = begun(partitions=2)
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    deliveries = [producing.send(partition=index) for index in (0, 1)]
    producing.brokers.run()
    assert [error_of(delivery) for delivery in deliveries] == [ClusterAuthorizationFailed] * 2
    assert producing.core.metrics()["buffer-available-bytes"] == producing.core.metrics()["buffer-total-bytes"]


def split_in_two(**settings: object) -> tuple[Producing, WrittenLogs, list[Any]]:
    """Two records whose batch was found too large, and whose parts are not answered."""
    producing, logs = begun(linger_ms=1000, **settings)
    producing.brokers.answer("Produce", [refusing(logs, ErrorCode.MESSAGE_TOO_LARGE), KEEP, KEEP])
    deliveries = [producing.send(b"%d" % number * 100) for number in range(2)]
    producing.flush()
    assert len(producing.brokers.asked("Produce")) > 1
    assert not any(delivery.done() for delivery in deliveries)
    return producing, logs, deliveries


def test_a_producer_can_be_closed_while_a_split_batch_is_on_its_way() -> None:
    producing, _, deliveries = split_in_two()
    producing.core.close()
    assert [error_of(delivery) for delivery in deliveries] == [ClientClosed] * 2


def test_the_parts_of_a_batch_that_was_split_grow_too_old() -> None:
    producing, _, deliveries = split_in_two(delivery_timeout_ms=40_000, request_timeout_ms=30_000)
    producing.brokers.answer("Produce", DROP)
    producing.brokers.advance(60_000)
    assert [error_of(delivery) for delivery in deliveries] == [DeliveryTimedOut] * 2
    assert producing.core.metrics()["buffer-available-bytes"] == producing.core.metrics()["buffer-total-bytes"]


def test_order_is_kept_with_one_request_in_flight_when_an_answer_names_the_new_leader() -> None:
    """KIP-951. Without idempotence nothing but the sender keeps the order."""
    producing, logs = begun((1, 2), batch_size=0, enable_idempotence=False, max_in_flight_requests_per_connection=1)
    hint = ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    endpoint = ProduceResponse.NodeEndpoint(node_id=2, host="broker-2", port=9092)

    def moved(node_id: int, version: int, request: Any) -> ProduceResponse:
        response = refusing(logs, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint)(node_id, version, request)
        response.node_endpoints = [endpoint]
        return response

    producing.send(b"first", partition=0)
    producing.core.cluster.versions_of(2)  # node 2 is connected, so that nothing has to wait for that
    producing.brokers.run()
    producing.brokers.answer("Produce", KEEP)
    for number in range(4):
        producing.send(b"%d" % number, partition=0)
    producing.brokers.run()
    producing.brokers.leaders["clicks", 0] = 2, 5
    producing.brokers.answer("Produce", [moved] + [logs.produce] * 10)
    producing.brokers.release()
    producing.brokers.advance(5000)
    assert logs.values["clicks", 0] == [b"first", b"0", b"1", b"2", b"3"]


def test_a_batch_that_grew_too_old_while_its_request_waited_does_not_spoil_the_request() -> None:
    """While the broker has us throttled, requests wait on our side (KIP-219)."""
    producing, logs = begun(delivery_timeout_ms=2_000, request_timeout_ms=1_200)
    producing.brokers.answer("Produce", KEEP)
    old = producing.send(b"old", partition=0)
    producing.brokers.advance(1_100)

    def throttled(node_id: int, version: int, request: Any) -> ProduceResponse:
        response = refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS)(node_id, version, request)
        response.throttle_time_ms = 1_000
        return response

    producing.brokers.release(throttled)
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.advance(990)
    assert error_of(old) is DeliveryTimedOut
    producing.brokers.advance(1_000)
    sent = [one.records for asked in producing.brokers.asked("Produce") for one in _partitions(asked)]
    assert len(sent) >= 1
    assert all(records is not None for records in sent)


def _partitions(request: Any) -> list[Any]:
    return [one for topic in request.topic_data for one in topic.partition_data]


def test_what_cannot_be_encoded_leaves_nothing_behind() -> None:
    producing, _ = begun(linger_ms=50)
    with pytest.raises((TypeError, ValueError)):
        producing.send(b"v", headers=[("name", 7)])
    producing.brokers.advance(100)
    assert producing.brokers.asked("Produce") == []
    delivery = producing.send(b"w")
    producing.flush()
    assert delivery.result().offset == 0


def test_a_large_record_that_fails_alone_is_too_large() -> None:
    producing, logs = begun()
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.MESSAGE_TOO_LARGE))
    delivery = producing.send()
    producing.brokers.run()
    assert error_of(delivery) is MessageTooLarge


def test_records_that_nobody_acknowledges_wait_in_bounded_memory_for_a_broker_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With acks=0 a batch is done when its bytes are on their way, not when they are to go."""
    producing, _ = begun(acks=0, enable_idempotence=False, batch_size=1000, buffer_memory=10_000)
    producing.brokers.answer("Produce", KEEP)
    producing.send()
    producing.brokers.run()
    monkeypatch.setattr(ScriptedTransport, "send_parts", _blocks)
    outcomes: list[Any] = []
    for _ in range(40):
        outcomes.append(producing.core.send("clicks", b"v" * 900, None, 0, None, None, None))
        producing.brokers.run()
    waits = [outcome for outcome in outcomes if isinstance(outcome, Promise)]
    assert waits, "there is no end to what it takes"
    assert producing.core.metrics()["buffer-available-bytes"] < 1000
    monkeypatch.undo()
    producing.brokers.advance(60_000)
    assert all(outcome.done() for outcome in outcomes if not isinstance(outcome, Promise)), "it times out"
    assert producing.core.metrics()["buffer-available-bytes"] == 10_000


def _blocks(transport: object, parts: object, *, more: bool) -> int:
    raise BlockingIOError


def test_an_error_that_lasts_does_not_grow() -> None:
    producing, logs = begun()
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    producing.send()
    producing.brokers.run()
    lengths = []
    for _ in range(5):
        with pytest.raises(ClusterAuthorizationFailed) as refused:
            producing.core.send("clicks", b"v", None, None, None, None, None)
        lengths.append(len(refused.traceback))
    assert lengths[-1] == lengths[0]


@pytest.mark.parametrize(
    "refused", [{"timestamp_ms": -5}, {"headers": [("h", 5)]}, {"headers": [(3, b"x")]}], ids=["time", "header", "name"]
)
def test_a_send_that_raises_leaves_nothing_behind(refused: dict[str, Any]) -> None:
    producing, logs = begun(linger_ms=200)
    producing.send(b"first")
    producing.flush()
    with pytest.raises((ValueError, TypeError)):
        producing.send(b"x", **refused)
    assert producing.core.accumulator.unfinished() == []
    assert producing.core.metrics()["buffer-available-bytes"] == producing.core.metrics()["buffer-total-bytes"]
    assert producing.core.flush().is_done
    producing.send(b"next")
    producing.flush()
    assert logs.values["clicks", 0] == [b"first", b"next"]


def test_a_send_that_raises_leaves_the_open_batch_as_it_is() -> None:
    producing, logs = begun(linger_ms=200)
    producing.send(b"first")
    with pytest.raises(ValueError, match="timestamp"):
        producing.send(b"x", timestamp_ms=-5)
    producing.send(b"next")
    producing.flush()
    assert logs.values["clicks", 0] == [b"first", b"next"]


def test_batches_behind_one_that_grew_too_old_are_sent_at_once() -> None:
    """They do not wait for the pause after which the first one would have been tried again."""
    producing, logs = begun(
        batch_size=0, delivery_timeout_ms=20_000, request_timeout_ms=5_000, retry_backoff_ms=60_000,
        retry_backoff_max_ms=60_000, enable_idempotence=False, max_in_flight_requests_per_connection=1,
    )  # fmt: skip
    producing.send(b"warm")
    producing.flush()
    producing.brokers.answer("Produce", [refusing(logs, ErrorCode.NOT_LEADER_OR_FOLLOWER), logs.produce])
    first = producing.send(b"first")
    producing.brokers.advance(10_000)
    second = producing.send(b"second")
    while not first.done():
        producing.brokers.advance(100)
    producing.brokers.run()
    assert error_of(first) is DeliveryTimedOut
    assert second.done()
    assert second.exception() is None


def test_a_batch_is_given_up_in_time_though_a_younger_one_was_split() -> None:
    producing, logs = begun((1, 2), partitions=2, linger_ms=1000, delivery_timeout_ms=40_000, request_timeout_ms=30_000)
    producing.brokers.unreachable.add(2)
    old = producing.send(b"old", partition=1)
    producing.brokers.advance(25_000)
    producing.brokers.answer("Produce", KEEP)
    for number in range(2):
        producing.send(b"%d" % number, partition=0)
    producing.flush()
    producing.brokers.release(refusing(logs, ErrorCode.MESSAGE_TOO_LARGE))
    producing.brokers.advance(15_500)
    assert error_of(old) is DeliveryTimedOut
