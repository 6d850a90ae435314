"""A node with an authorizer: what brokers of this kind have been attacked with, and what rules do at run time."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.apis.table import APIS
from ottla.base.errors import OttlaError
from ottla.runtime.channels import Caller
from ottla.runtime.peers.remote_peers import enveloped
from ottla.runtime.request import ClientConnection
from ottla.serving.access.check_shapes import find_check, refuse_all
from ottla.wire import messages as m
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from tests.golden.access.access_requests import MINE, OTHER, TopicIds, a_fetch, a_produce, batch
from tests.golden.access.access_table import creations
from tests.golden.access.guarded_nodes import EVERY_RULE, GuardedNode
from tests.golden.access.prepared import prepare
from tests.unit.node.whole_nodes import COMBINED, CONTROLLER_PORT, PORT, WholeNode

BOB, EVE = "User:bob", "User:eve"
READ_TOPIC = (AclResource.TOPIC, AclOperation.READ)
WRITE_TOPIC = (AclResource.TOPIC, AclOperation.WRITE)
WRITE_TXN = (AclResource.TRANSACTIONAL_ID, AclOperation.WRITE)


@pytest.fixture(scope="module")
def prepared() -> Iterator[tuple[GuardedNode, TopicIds]]:
    node = GuardedNode()
    yield node, prepare(node.ask)
    node.whole.stop()


@pytest.fixture
def node(prepared: tuple[GuardedNode, TopicIds]) -> GuardedNode:
    prepared[0].delete_rules()
    return prepared[0]


@pytest.fixture
def ids(prepared: tuple[GuardedNode, TopicIds]) -> TopicIds:
    return prepared[1]


def errors(response: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in response.responses}


def create(*names: str) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic
    return m.CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=1, replication_factor=1) for name in names],
        timeout_ms=1000,
        validate_only=True,
    )


def test_every_api_that_is_served_has_a_check() -> None:
    answers = [(row, answer) for row in APIS.values() for answer in (row.broker, row.controller) if answer is not None]
    assert [row.key for row, answer in answers if find_check(row, answer) is refuse_all] == []


def test_vulnerability_a_replica_fetch_from_a_mere_client_reads_nothing(node: GuardedNode, ids: TopicIds) -> None:
    node.create_rules(creations([READ_TOPIC]))
    told = errors(node.ask(a_fetch(12, ids, replica_id=1), 12, principal=BOB))
    assert told == dict.fromkeys((MINE, OTHER), ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_vulnerability_a_forwarded_envelope_from_a_mere_client_is_not_opened(node: GuardedNode) -> None:
    envelope = enveloped(create("new"), 7, Caller("User:admin", "127.0.0.1"))
    reply = node.ask(envelope, 0, to_controller=True, principal=EVE)
    assert (reply.error_code, reply.response_data) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_a_forwarded_request_is_checked_for_the_client_and_not_for_the_broker(node: GuardedNode) -> None:
    envelope = enveloped(create("new"), 7, Caller(EVE, "127.0.0.1"))
    reply = node.ask(envelope, 0, to_controller=True)
    assert reply.error_code == ErrorCode.NONE
    _, opened = decode_response(m.CreateTopicsResponse, reply.response_data, 7)
    assert [topic.error_code for topic in opened.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_a_forwarded_request_is_checked_for_the_address_of_the_client(node: GuardedNode) -> None:
    (rule,) = creations([(AclResource.TOPIC, AclOperation.CREATE)], EVE)
    rule.host = "10.1.1.1"
    node.create_rules([rule])
    for host, expected in (("10.1.1.1", ErrorCode.NONE), ("10.1.1.2", ErrorCode.TOPIC_AUTHORIZATION_FAILED)):
        reply = node.ask(enveloped(create("mine-new"), 7, Caller(EVE, host)), 0, to_controller=True)
        _, opened = decode_response(m.CreateTopicsResponse, reply.response_data, 7)
        assert [topic.error_code for topic in opened.topics] == [expected]


def test_vulnerability_writing_to_a_transaction_that_is_not_yours_is_refused(node: GuardedNode, ids: TopicIds) -> None:
    node.create_rules(creations([WRITE_TXN, WRITE_TOPIC]))
    reply = node.ask(a_produce(12, ids, OTHER), 12, principal=BOB)
    codes = {part.error_code for topic in reply.responses for part in topic.partition_responses}
    assert codes == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    for request, version in (
        (m.EndTxnRequest(transactional_id=OTHER, producer_id=1, committed=True), 3),
        (m.InitProducerIdRequest(transactional_id=OTHER), 4),
        (m.AddOffsetsToTxnRequest(transactional_id=OTHER, producer_id=1, group_id=MINE), 3),
    ):
        reply = node.ask(request, version, principal=BOB)
        assert reply.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_vulnerability_an_authorizer_that_raises_lets_nothing_through(
    node: GuardedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_kwargs: object) -> bool:
        raise ValueError("it is broken")

    with monkeypatch.context() as patched:
        patched.setattr("ottla.security.acls.authorizer.Authorizer.allows", broken)
        with pytest.raises(ValueError, match="broken"):
            node.ask(m.MetadataRequest(topics=None), 12, principal=BOB)
        refused = node.ask(create("new"), 7, principal=BOB)
    assert [topic.error_code for topic in refused.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    with pytest.raises(ValueError, match="broken"):  # The controller's own fault is told in a turn of its own.
        node.whole.timers.advance(1)
    known = node.ask(m.MetadataRequest(topics=None), 12)
    assert "new" not in {topic.name for topic in known.topics}


def test_a_session_hides_what_may_not_be_read_and_shows_it_when_it_may(node: GuardedNode, ids: TopicIds) -> None:
    node.create_rules(creations([READ_TOPIC]))
    client = ClientConnection(9, "PLAINTEXT", "127.0.0.1", EVE)
    first = node.ask(a_fetch(12, ids, session_epoch=0), 12, client=client)
    assert set(errors(first).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    again = m.FetchRequest(session_id=first.session_id, session_epoch=1, max_wait_ms=0, max_bytes=1000)
    assert set(errors(node.ask(again, 12, client=client)).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    node.create_rules(creations([READ_TOPIC], EVE))
    later = m.FetchRequest(session_id=first.session_id, session_epoch=2, max_wait_ms=0, max_bytes=1000)
    assert errors(node.ask(later, 12, client=client))[MINE] == ErrorCode.NONE


def test_topics_of_the_oldest_metadata_request_stay_hidden(node: GuardedNode) -> None:
    topic = m.MetadataRequest.MetadataRequestTopic
    reply = node.ask(m.MetadataRequest(topics=[topic(name=OTHER)]), 0, principal=EVE)
    assert [(one.name, one.error_code) for one in reply.topics] == [(OTHER, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_a_topic_is_not_created_by_asking_for_it_without_the_right(node: GuardedNode) -> None:
    node.create_rules(creations([(AclResource.TOPIC, AclOperation.DESCRIBE)]))
    topic = m.MetadataRequest.MetadataRequestTopic
    request = m.MetadataRequest(topics=[topic(name="mine-made")], allow_auto_topic_creation=True)
    (told,) = node.ask(request, 12, principal=BOB).topics
    assert told.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "mine-made" not in node.whole.node.broker.image.topics.by_name
    node.create_rules(creations([(AclResource.TOPIC, AclOperation.CREATE)]))
    (told,) = node.ask(request, 12, principal=BOB).topics
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "mine-made" in node.whole.node.broker.image.topics.by_name


def test_a_pattern_finds_the_topics_that_its_member_may_describe(node: GuardedNode, ids: TopicIds) -> None:
    node.create_rules(creations([(AclResource.GROUP, AclOperation.READ), READ_TOPIC]))
    joining = m.ConsumerGroupHeartbeatRequest(
        group_id="mine-by-pattern",
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_regex="mine|other",
        topic_partitions=[],
    )
    joined = node.ask(joining, 1, principal=BOB)
    assert [topic.topic_id for topic in joined.assignment.topic_partitions] == [ids[MINE]]
    (rule,) = creations([(AclResource.TOPIC, AclOperation.DESCRIBE)])
    rule.resource_name = OTHER
    node.create_rules([rule])
    beating = m.ConsumerGroupHeartbeatRequest(
        group_id="mine-by-pattern", member_id="m1", member_epoch=joined.member_epoch
    )
    for _ in range(5):  # A new assignment is made when the one before it has stood for a while.
        later = node.ask(beating, 1, principal=BOB)
        if later.assignment is not None:
            break
        node.whole.timers.advance(2000)
        beating.member_epoch = later.member_epoch
    assert {topic.topic_id for topic in later.assignment.topic_partitions} == {ids[MINE], ids[OTHER]}


def test_a_repeated_produce_is_refused_once_its_right_is_gone(node: GuardedNode) -> None:
    """Over a connection, where such requests are answered without being decoded."""
    anonymous = "User:ANONYMOUS"
    node.create_rules(creations([WRITE_TOPIC], anonymous))
    client = node.whole.connect(PORT)
    outcomes = []
    for number in range(6):
        if number == 4:
            node.delete_rules()
        client.send(encode_request(_producing(), 9, number, "a producer"))
        node.whole.network.run()
        _, reply = decode_response(m.ProduceResponse, client.receive()[4:], 9)
        outcomes.append(reply.responses[0].partition_responses[0].error_code)
    assert outcomes == [ErrorCode.NONE] * 4 + [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2


def _producing() -> m.ProduceRequest:
    data = [m.ProduceRequest.PartitionProduceData(index=0, records=batch())]
    topics = [m.ProduceRequest.TopicProduceData(name=MINE, partition_data=data)]
    return m.ProduceRequest(acks=1, timeout_ms=1000, transactional_id=None, topic_data=topics)


def test_no_file_is_read_for_a_client_that_may_not_change_settings(
    node: GuardedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of a broker name files. What is in one, and whether it is there, is not for everyone to find out."""
    looked_at: list[object] = []
    settings = node.whole.node.broker.node_settings  # type: ignore[union-attr]
    monkeypatch.setattr(settings, "checks", [lambda _values, keys: looked_at.append(keys)])
    change = m.IncrementalAlterConfigsRequest.AlterableConfig(
        name="listener.name.plaintext.ssl.truststore.location", config_operation=0, value="/etc/shadow"
    )
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=4, resource_name=str(settings.node_id), configs=[change]
    )
    request = m.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    refused = node.ask(request, 1, principal=EVE)
    assert refused.responses[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert looked_at == []
    node.ask(request, 1)
    assert len(looked_at) == 1


def test_a_denial_is_in_the_audit_log(node: GuardedNode, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.audit")
    node.ask(m.HeartbeatRequest(group_id="g\nroot logged in", member_id="m"), 4, principal=EVE)
    line = json.loads(caplog.messages[-1])
    assert (line["principal"], line["operation"], line["resource"]) == (EVE, "READ", "GROUP")
    assert line["name"] == "g\nroot logged in"
    assert "\n" not in caplog.messages[-1]


def test_rules_are_there_again_after_a_restart() -> None:
    node = GuardedNode()
    node.create_rules(creations([READ_TOPIC]))
    before = node.ask(m.DescribeAclsRequest(**EVERY_RULE), 3)
    node.whole.stop()
    again = GuardedNode(disk=node.whole.disk)
    assert again.ask(m.DescribeAclsRequest(**EVERY_RULE), 3) == before
    assert len(before.resources) == 1
    again.whole.stop()


@pytest.mark.parametrize("port", [PORT, CONTROLLER_PORT])
def test_without_an_authorizer_there_are_no_rules(port: int) -> None:
    plain = WholeNode(COMBINED)
    created = plain.ask(m.CreateAclsRequest(creations=creations([READ_TOPIC])), 3, port)
    wanted = m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**EVERY_RULE)])
    deleted = plain.ask(wanted, 3, port)
    described = plain.ask(m.DescribeAclsRequest(**EVERY_RULE), 3, port)
    for answer in (created.results[0], deleted.filter_results[0], described):
        assert answer.error_code == ErrorCode.SECURITY_DISABLED
    # As Apache Kafka 4.3.1 says it, on the listeners of brokers and of controllers.
    assert created.results[0].error_message == described.error_message == "No Authorizer is configured on the broker"
    assert deleted.filter_results[0].error_message == "No Authorizer is configured."
    plain.stop()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"authorizer_class_name": "org.example.Mine"}, "authorizer.class.name"),
        ({"super_users": "admin"}, "super.users"),
    ],
)
def test_settings_that_cannot_be_served_are_refused_by_name(settings: dict[str, str], named: str) -> None:
    with pytest.raises(OttlaError, match=named):
        WholeNode(COMBINED, **settings)


def test_a_client_over_a_connection_is_who_it_is() -> None:
    node = GuardedNode()
    reply = node.whole.ask(m.MetadataRequest(topics=None, include_cluster_authorized_operations=True), 8, PORT)
    assert reply.cluster_authorized_operations == 0
    (topic,) = node.whole.ask(create("new"), 7, PORT).topics
    assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    node.whole.stop()
