"""Clients above their quotas, through a server and a broker with one time: what they are told, and what is counted."""

import pytest

from ottla.records.kernel import IS_COMPILED
from ottla.wire.messages import CreateTopicsRequest, CreateTopicsResponse, FetchRequest, MetadataRequest
from tests.unit.broker.brokers import batch, only, produce_request, values_in
from tests.unit.broker.quotas.metered_node import FETCH, PRODUCE, MeteredNode, fetch, produce


@pytest.fixture
def node() -> MeteredNode:
    return MeteredNode()


def test_a_producer_above_its_rate_is_told_to_wait_and_muted(node: MeteredNode) -> None:
    node.limit(user="ANONYMOUS", producer_byte_rate=1000.0)
    client = node.connect()
    assert produce(client, 9_000).throttle_time_ms == 0
    reply = produce(client, 9_000)
    assert only(reply).base_offset == 1, "what was sent is taken"
    assert 8_000 < reply.throttle_time_ms < 10_000
    assert produce(client, 10) is None
    node.advance(reply.throttle_time_ms)
    ((_, late),) = client.replies()
    assert only(late).base_offset == 2


def test_connections_of_a_user_share_its_rate_and_other_clients_have_their_own(node: MeteredNode) -> None:
    node.limit(client_id=None, producer_byte_rate=1000.0)
    first, second = node.connect(), node.connect()
    assert produce(first, 9_000).throttle_time_ms == 0
    assert produce(second, 9_000).throttle_time_ms > 0
    node.limit(client_id="client", producer_byte_rate=1_000_000.0)
    assert produce(node.connect(), 9_000).throttle_time_ms == 0


def test_a_producer_without_acknowledgements_is_muted_too(node: MeteredNode) -> None:
    node.limit(user=None, producer_byte_rate=1000.0)
    client = node.connect()
    assert produce(client, 18_000, acks=0) is None
    client.ask((produce_request(batch(b"next")), PRODUCE))
    assert not client.end.receive()
    node.advance(10_000)
    assert client.end.receive()


@pytest.mark.skipif(not IS_COMPILED, reason="without a compiler every request is decoded")
def test_requests_are_counted_as_soon_as_there_is_a_limit_and_as_long(node: MeteredNode) -> None:
    client = node.connect()
    for _ in range(3):
        produce(client, 10_000)
    node.limit(user="ANONYMOUS", producer_byte_rate=1000.0)
    assert produce(client, 5_000).throttle_time_ms == 0
    assert produce(client, 10_000).throttle_time_ms > 0
    node.limit(user="ANONYMOUS", producer_byte_rate=None)
    node.advance(20_000)
    client.replies()
    assert produce(client, 10_000).throttle_time_ms == 0


def test_a_consumer_above_its_rate_gets_nothing_and_is_not_charged_for_it(node: MeteredNode) -> None:
    client = node.connect()
    for _ in range(4):
        produce(client, 5_000)
    node.limit(user="ANONYMOUS", consumer_byte_rate=1000.0)
    assert len(values_in(only(fetch(client, max_bytes=6_000)))) == 1
    refused = fetch(client, offset=1)
    assert refused.responses == []
    assert refused.throttle_time_ms > 0
    ((_, account),) = node.broker.client_quotas.fetch.items()
    assert account.rate.measure(node.broker.client_quotas.now_ms()).rate <= 1000


def test_a_fetch_brings_no_more_than_its_quota_ever_allows(node: MeteredNode) -> None:
    client = node.connect()
    for _ in range(4):
        produce(client, 5_000)
    node.limit(user="ANONYMOUS", consumer_byte_rate=1000.0)
    assert len(values_in(only(fetch(client)))) == 1


def test_a_batch_that_is_larger_than_the_quota_ever_allows_comes_after_a_rest(node: MeteredNode) -> None:
    client = node.connect()
    produce(client, 50_000)
    node.limit(user="ANONYMOUS", consumer_byte_rate=1000.0)
    reply = fetch(client)
    assert len(values_in(only(reply))) == 1
    assert reply.throttle_time_ms > 39_000


def test_a_session_goes_on_after_an_empty_reply(node: MeteredNode) -> None:
    client = node.connect()
    for _ in range(3):
        produce(client, 8_000)
    node.limit(user="ANONYMOUS", consumer_byte_rate=1000.0)

    def ask(session_id: int, epoch: int, offset: int | None) -> None:
        wanted = [] if offset is None else [FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=9_000)]
        topics = [FetchRequest.FetchTopic(topic="orders", partitions=wanted)] if wanted else []
        request = FetchRequest(
            topics=topics, session_id=session_id, session_epoch=epoch, max_bytes=1 << 20, min_bytes=1
        )
        client.ask((request, FETCH))

    ask(0, 0, 0)
    opened = client.replies()[0][1]
    assert opened.session_id
    assert len(values_in(only(opened))) == 1
    ask(opened.session_id, 1, 1)
    refused = client.replies()[0][1]
    assert (refused.session_id, refused.error_code, refused.responses) == (opened.session_id, 0, [])
    node.advance(11_000)
    ask(opened.session_id, 2, None)
    assert len(values_in(only(client.replies()[0][1]))) == 1


def test_a_followers_fetch_is_not_counted(node: MeteredNode) -> None:
    client = node.connect()
    produce(client, 50_000)
    node.limit(user="ANONYMOUS", consumer_byte_rate=1.0, request_percentage=0.001)
    partition = FetchRequest.FetchPartition(partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=2,
        session_epoch=-1,
        max_bytes=1 << 20,
        min_bytes=1,
        topics=[FetchRequest.FetchTopic(topic="orders", partitions=[partition])],
    )
    for _ in range(3):
        client.ask((request, FETCH))
        assert client.replies()[0][1].throttle_time_ms == 0


def test_a_client_that_takes_too_much_of_the_thread_waits_a_window_at_most(node: MeteredNode) -> None:
    node.limit(user="ANONYMOUS", request_percentage=1.0)
    client = node.connect()
    handle = node.scene.handle

    def work(context, message, respond):  # type: ignore[no-untyped-def]
        node.clock.advance(200)
        handle(context, message, respond)

    node.scene.handle = work
    client.ask((MetadataRequest(topics=[]), 12))
    assert client.replies()[0][1].throttle_time_ms == 1000
    ((_, account),) = node.broker.client_quotas.request.items()
    assert account.rate.measure(node.broker.client_quotas.now_ms()).rate == pytest.approx(2, rel=0.1)


def test_what_the_controller_counted_mutes_the_client_here(node: MeteredNode) -> None:
    node.limit(user="ANONYMOUS", controller_mutation_rate=1.0)
    node.controller.replies.append(CreateTopicsResponse(throttle_time_ms=700))
    client = node.connect()
    client.ask((CreateTopicsRequest(timeout_ms=1000), 7))
    assert client.replies()[0][1].throttle_time_ms == 700
    assert produce(client, 10) is None
    node.advance(700)
    assert len(client.replies()) == 1


def test_without_quotas_nothing_is_counted(node: MeteredNode) -> None:
    client = node.connect()
    produce(client, 50_000)
    assert node.scene.server.metering is None
    node.limit(user="ANONYMOUS", producer_byte_rate=1000.0)
    assert node.scene.server.metering is not None
    assert produce(client, 9_000).throttle_time_ms == 0, "what came before does not count"
    node.limit(user="ANONYMOUS", producer_byte_rate=None)
    assert node.scene.server.metering is None


def test_a_request_for_many_partitions_counts_once(node: MeteredNode) -> None:
    node.limit(user="ANONYMOUS", producer_byte_rate=1e9)
    client = node.connect()
    request = produce_request(batch(b"one"))
    client.ask((request, PRODUCE))
    client.replies()
    ((_, account),) = node.broker.client_quotas.produce.items()
    sent = account.rate.measure(node.broker.client_quotas.now_ms()).rate * 10
    assert sent == len(client.bytes_of((request, PRODUCE))) - 4
