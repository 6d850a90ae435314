"""Calls on topics: what is asked of the cluster, and what becomes of each topic."""

import warnings

import pytest

from ottla.base.ids import Uuid, uuid_text
from ottla.client.admin import topics
from ottla.client.admin.results import Results, UnnoticedErrors
from ottla.client.admin.topics import NewPartitions, NewTopic
from ottla.client.errors import (
    Disconnected,
    InvalidTopic,
    KafkaError,
    PolicyViolation,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.wire.messages import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeTopicPartitionsResponse,
    MetadataResponse,
)
from tests.unit.client.admin.fake_cluster import FakeCluster

ID = Uuid(bytes(range(16)))


def created(**codes: int) -> CreateTopicsResponse:
    result = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(topics=[result(name=name, error_code=code) for name, code in codes.items()])


def test_a_topic_is_created_with_what_was_given_and_the_rest_left_to_the_cluster() -> None:
    cluster = FakeCluster()
    cluster.on("CreateTopicsRequest", created(a=0, b=0, c=0))
    wanted = [NewTopic("a", 3, 2, config={"retention.ms": "5"}), "b", NewTopic("c", assignment={0: [1, 2]})]
    cluster.run(topics.create_topics(cluster.asking, wanted)).raise_first()
    [request] = cluster.requests("CreateTopicsRequest")
    a, b, c = request.topics
    assert (a.num_partitions, a.replication_factor, a.configs[0].value) == (3, 2, "5")
    assert (b.num_partitions, b.replication_factor, b.assignments) == (-1, -1, [])
    assert (c.num_partitions, c.assignments[0].broker_ids) == (-1, [1, 2])


def test_each_topic_has_its_own_outcome() -> None:
    cluster = FakeCluster()
    cluster.on("CreateTopicsRequest", created(a=0, b=TopicAlreadyExists.code))
    results = cluster.run(topics.create_topics(cluster.asking, ["a", "b"]))
    assert results["a"].name == "a"
    with pytest.raises(TopicAlreadyExists):
        results["b"]
    assert list(results.errors) == ["b"]
    assert list(results.succeeded) == ["a"]
    with pytest.raises(TopicAlreadyExists):
        results.raise_first()


def test_only_what_the_quota_held_back_is_tried_again() -> None:
    cluster = FakeCluster()
    answers = [created(a=0, b=ThrottlingQuotaExceeded.code), created(b=0)]
    cluster.on("CreateTopicsRequest", [*answers])
    cluster.run(topics.create_topics(cluster.asking, ["a", "b"])).raise_first()
    asked = [[topic.name for topic in request.topics] for request in cluster.requests("CreateTopicsRequest")]
    assert asked == [["a", "b"], ["b"]]
    cluster.on("CreateTopicsRequest", [*answers])
    results = cluster.run(topics.create_topics(cluster.asking, ["a", "b"], retry_on_quota=False))
    assert type(results.errors["b"]) is ThrottlingQuotaExceeded


def test_a_time_limit_that_a_broker_met_is_not_tried_again_because_the_topic_may_be_there() -> None:
    cluster = FakeCluster()
    cluster.on("CreateTopicsRequest", created(a=RequestTimedOut.code))
    assert type(cluster.run(topics.create_topics(cluster.asking, ["a"])).errors["a"]) is RequestTimedOut
    assert len(cluster.asked) == 1


def test_a_lost_connection_is_tried_again_until_the_deadline_and_then_told() -> None:
    cluster = FakeCluster()
    cluster.on("CreateTopicsRequest", [Disconnected(), Disconnected(), created(a=0)])
    cluster.run(topics.create_topics(cluster.asking, ["a"])).raise_first()
    assert cluster.refreshes == 2
    cluster.on("CreateTopicsRequest", Disconnected("gone"))
    started_ms = cluster.clock.elapsed_us() // 1000
    results = cluster.run(topics.create_topics(cluster.asking, ["a"], timeout=5.0))
    assert results.errors["a"].message == "gone"
    assert cluster.clock.elapsed_us() // 1000 - started_ms == 5000


def test_retries_may_be_limited() -> None:
    cluster = FakeCluster(retries=1)
    cluster.on("CreateTopicsRequest", Disconnected())
    assert cluster.run(topics.create_topics(cluster.asking, ["a"])).errors
    assert len(cluster.asked) == 2


def test_a_topic_that_the_answer_leaves_out_has_failed() -> None:
    cluster = FakeCluster()
    cluster.on("CreateTopicsRequest", created(a=0))
    assert "leaves out b" in str(cluster.run(topics.create_topics(cluster.asking, ["a", "b"])).errors["b"])


def test_topics_are_deleted_by_name_in_the_form_of_the_version_and_by_id() -> None:
    cluster = FakeCluster()
    result = DeleteTopicsResponse.DeletableTopicResult
    cluster.on("DeleteTopicsRequest", DeleteTopicsResponse(responses=[result(name="a", topic_id=ID)]))
    cluster.run(topics.delete_topics(cluster.asking, ["a"])).raise_first()
    cluster.newest["DeleteTopicsRequest"] = 5
    cluster.run(topics.delete_topics(cluster.asking, ["a"])).raise_first()
    del cluster.newest["DeleteTopicsRequest"]
    cluster.run(topics.delete_topics_by_id(cluster.asking, [uuid_text(ID)])).raise_first()
    new, old, by_id = cluster.requests("DeleteTopicsRequest")
    assert (new.topics[0].name, list(new.topic_names)) == ("a", [])
    assert (old.topics, list(old.topic_names)) == ([], ["a"])
    assert (by_id.topics[0].name, by_id.topics[0].topic_id) == (None, ID)


def page(name: str, indexes: list[int], after: tuple[str, int] | None = None) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse
    partition = response.DescribeTopicPartitionsResponsePartition
    partitions = [partition(partition_index=index, leader_id=1) for index in indexes]
    topic = response.DescribeTopicPartitionsResponseTopic(name=name, topic_id=ID, partitions=partitions)
    cursor = None if after is None else response.Cursor(topic_name=after[0], partition_index=after[1])
    return response(topics=[topic], next_cursor=cursor)


def test_a_large_topic_comes_in_pages() -> None:
    cluster = FakeCluster()
    cluster.on(
        "DescribeTopicPartitionsRequest", [page("a", [0], ("b", 0)), page("b", [0, 1], ("b", 2)), page("b", [2])]
    )
    results = cluster.run(topics.describe_topics(cluster.asking, ["b", "a"]))
    assert list(results) == ["b", "a"]
    assert [one.partition for one in results["b"].partitions] == [0, 1, 2]
    first, _, third = cluster.requests("DescribeTopicPartitionsRequest")
    assert [topic.name for topic in first.topics] == ["a", "b"]
    assert ([topic.name for topic in third.topics], third.cursor.partition_index) == (["b"], 2)


def test_an_older_broker_is_asked_for_metadata_and_creates_nothing() -> None:
    cluster = FakeCluster()
    cluster.on("DescribeTopicPartitionsRequest", UnsupportedVersion())
    unknown = MetadataResponse.MetadataResponseTopic(name="no", error_code=UnknownTopicOrPartition.code)
    known = MetadataResponse.MetadataResponseTopic(name="a", topic_id=ID)
    cluster.on("MetadataRequest", MetadataResponse(topics=[known, unknown]))
    results = cluster.run(topics.describe_topics(cluster.asking, ["a", "no"]))
    assert results["a"].topic_id == uuid_text(ID)
    assert "'no'" in str(results.errors["no"])
    [request] = cluster.requests("MetadataRequest")
    assert not request.allow_auto_topic_creation


def test_an_empty_name_is_refused_without_asking() -> None:
    cluster = FakeCluster()
    assert type(cluster.run(topics.describe_topics(cluster.asking, [""])).errors[""]) is InvalidTopic
    assert cluster.asked == []


def test_internal_topics_are_listed_on_request() -> None:
    cluster = FakeCluster()
    topic = MetadataResponse.MetadataResponseTopic
    cluster.on("MetadataRequest", MetadataResponse(topics=[topic(name="b"), topic(name="__a", is_internal=True)]))
    assert [one.name for one in cluster.run(topics.list_topics(cluster.asking))] == ["b"]
    everything = cluster.run(topics.list_topics(cluster.asking, include_internal=True))
    assert [one.name for one in everything] == ["__a", "b"]


def test_partitions_are_added_with_or_without_an_assignment() -> None:
    cluster = FakeCluster()
    result = CreatePartitionsResponse.CreatePartitionsTopicResult
    policy = result(name="b", error_code=PolicyViolation.code, error_message="no more")
    cluster.on("CreatePartitionsRequest", CreatePartitionsResponse(results=[result(name="a"), policy]))
    wanted = {"a": 4, "b": NewPartitions(2, [[1]])}
    results = cluster.run(topics.create_partitions(cluster.asking, wanted))
    assert results["a"] is None
    assert results.errors["b"].message == "no more"
    [request] = cluster.requests("CreatePartitionsRequest")
    assert [(one.count, one.assignments is None) for one in request.topics] == [(4, True), (2, False)]


def test_errors_that_nobody_looked_at_are_warned_about() -> None:
    outcomes: dict[str, KafkaError | None] = {"a": TopicAlreadyExists()}
    results: Results[str, None] = Results("create_topics", outcomes)
    with pytest.warns(UnnoticedErrors, match="create_topics: a: "):
        del results
    noticed: Results[str, None] = Results("create_topics", outcomes)
    assert noticed.errors
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del noticed
