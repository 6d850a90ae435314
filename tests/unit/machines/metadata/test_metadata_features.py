"""Feature levels, what a newly formatted cluster begins with, and which versions of records a level allows."""

from collections.abc import Sequence

import pytest

from ottla.machines.metadata.controller.activation import bootstrap_records
from ottla.machines.metadata.image.features import (
    METADATA_VERSIONS,
    SERVED,
    default_level,
    partition_version,
    register_broker_version,
)
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    BeginTransactionRecord,
    BrokerRegistrationRequest,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    UpdateFeaturesRequest,
)
from tests.unit.machines.metadata.admin_scenes import alter, create, features, topic
from tests.unit.machines.metadata.controllers import CLUSTER_ID, ControllerUnderTest, directory_of, one_node
from tests.unit.machines.metadata.golden_metadata import GOLDEN, records_of
from tests.unit.machines.metadata.plain_messages import plain
from tests.unit.machines.metadata.test_broker_lives import orders, partition

UNSERVED = ("share.version", "streams.version")


def served(records: Sequence[Message]) -> list[object]:
    """Without the levels of features that Apache Kafka has and we do not."""
    return [plain(one) for one in records if not (isinstance(one, FeatureLevelRecord) and one.name in UNSERVED)]


@pytest.mark.parametrize("directory", ["clean", "standalone"])
def test_formatting_leaves_what_kafkas_leaves(directory: str) -> None:
    theirs = [record for _, record, _ in records_of(GOLDEN / directory / "bootstrap.checkpoint")]
    assert {record.name for record in theirs} - SERVED.keys() == {*UNSERVED}
    assert [plain(record) for record in bootstrap_records()] == served(theirs)


def test_the_first_records_are_kafkas() -> None:
    log = sorted((GOLDEN / "clean" / "__cluster_metadata-0").glob("*.log"))[0]
    theirs = served([record for offset, record, _ in records_of(log) if offset <= 9])
    kafkas = [record for _, record, _ in records_of(GOLDEN / "clean" / "bootstrap.checkpoint")]
    for bootstrap in (bootstrap_records(), kafkas):
        decided = ControllerUnderTest(MetadataImage()).controller.activate(bootstrap)
        assert [plain(record.message) for record in decided.records] == theirs


def other_node(*, with_share_groups: bool) -> RegisterBrokerRecord:
    feature = RegisterBrokerRecord.BrokerFeature(name="share.version", max_supported_version=1)
    return RegisterBrokerRecord(broker_id=2, features=[feature] if with_share_groups else [])


def test_a_feature_that_only_this_nodes_former_life_served_is_switched_off() -> None:
    """A directory of Apache Kafka's, with one node, which is ours now."""
    node = one_node()
    node.image.replay(FeatureLevelRecord(name="share.version", feature_level=1))
    node.image.replay(other_node(with_share_groups=False))
    (record,) = node.controller.activate(bootstrap_records()).records
    assert plain(record.message) == plain(FeatureLevelRecord(name="share.version", feature_level=0))


def test_a_feature_that_another_node_serves_is_left_to_its_operator() -> None:
    node = one_node()
    node.image.replay(FeatureLevelRecord(name="share.version", feature_level=1))
    node.image.replay(other_node(with_share_groups=True))
    assert node.controller.activate(bootstrap_records()).records == []


def test_a_broker_that_does_not_serve_what_is_switched_on_is_refused_until_it_is_off() -> None:
    node = one_node()
    node.image.replay(other_node(with_share_groups=True))
    node.image.replay(FeatureLevelRecord(name="share.version", feature_level=1))
    served_by_ours = [
        BrokerRegistrationRequest.Feature(
            name=name, min_supported_version=supported.lowest, max_supported_version=supported.highest
        )
        for name, supported in SERVED.items()
    ]
    registration = BrokerRegistrationRequest(
        broker_id=3, cluster_id=CLUSTER_ID, features=served_by_ours, log_dirs=[directory_of(3)]
    )
    assert node.ask(registration).error_code == ErrorCode.UNSUPPORTED_VERSION
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert node.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code == ErrorCode.NONE
    assert node.ask(registration).error_code == ErrorCode.NONE


def test_a_feature_that_is_not_served_cannot_be_switched_on() -> None:
    node = one_node()
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)
    reply = node.ask(UpdateFeaturesRequest(feature_updates=[update]))
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Local controller 1 does not support this feature." in reply.error_message


def test_a_log_that_is_in_order_gets_nothing() -> None:
    assert one_node().controller.activate(bootstrap_records()).records == []


def test_a_transaction_that_nobody_will_end_is_aborted() -> None:
    node = one_node()
    node.image.replay(BeginTransactionRecord(name="half"))
    node.do(node.controller.activate(bootstrap_records()))
    assert not node.image.in_transaction


def test_bootstrapping_that_was_cut_short_begins_again() -> None:
    node = ControllerUnderTest(MetadataImage())
    node.image.replay(BeginTransactionRecord(name="Bootstrap records"))
    node.image.replay(FeatureLevelRecord(name="metadata.version", feature_level=30))
    node.do(node.controller.activate(bootstrap_records()))
    assert node.image.is_bootstrapped
    assert node.image.features.is_elr_enabled


@pytest.mark.parametrize(
    ("level", "register", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_records_are_written_in_versions_that_the_level_allows(level: int, register: int, partition: int) -> None:
    assert (register_broker_version(level), partition_version(level)) == (register, partition)


def test_levels_have_the_names_that_people_give() -> None:
    assert METADATA_VERSIONS[30].name == "4.3-IV0"
    assert METADATA_VERSIONS[7].name == "3.3-IV3"
    assert [default_level("transaction.version", level) for level in (23, 24)] == [0, 2]
    assert [default_level("kraft.version", level) for level in (20, 21)] == [0, 1]


def test_a_cluster_of_an_older_level_works_and_is_raised() -> None:
    node = ControllerUnderTest(MetadataImage())
    node.do(node.controller.activate(bootstrap_records(metadata_version=22)))
    node.start(1)
    node.ask(create(topic("orders")))
    assert node.image.topics.by_name["orders"].partitions[0].leader == 1
    node.heartbeat(1, want_fence=True)
    assert node.image.topics.by_name["orders"].partitions[0].isr == (1,), "without ELR the last one stays in the ISR"
    needs_more = features(("eligible.leader.replicas.version", 1, 1))
    reply = node.ask(needs_more, 2)
    assert "it depends on metadata.version level 23" in reply.error_message
    together = features(("metadata.version", 30, 1), ("eligible.leader.replicas.version", 1, 1))
    assert node.ask(together, 1).results[0].error_code == 0
    assert node.image.features.metadata_version == 30
    assert node.image.features.is_elr_enabled
    assert node.image.configs.of_cluster() == {"min.insync.replicas": "1"}


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("current", "level", "upgrade_type", "reason"),
    [
        (0, 1, 1, "Voter 3 has not reported its directory to this controller yet."),
        (1, 0, 2, "Can't downgrade the version of this feature."),
        (0, 2, 1, "Local controller 1 only supports versions 0-1"),
    ],
)
def test_the_raft_layers_feature_stays_as_it_is_while_something_is_in_the_way(
    current: int, level: int, upgrade_type: int, reason: str, validate_only: bool
) -> None:
    node = one_node()
    node.controller.kraft_version = current
    node.controller.context.kraft_upgrade_problem = "Voter 3 has not reported its directory to this controller yet."
    request = features(("kraft.version", level, upgrade_type))
    request.validate_only = validate_only
    decision = node.controller.decide(request, 2, 0)
    assert decision.records == []
    assert decision.reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert reason in decision.reply.error_message


def test_the_raft_layers_feature_is_raised_by_the_raft_layer() -> None:
    """The controller agrees, and has no record of its own for it."""
    node = one_node()
    node.controller.context.kraft_upgrade_problem = None
    decision = node.controller.decide(features(("kraft.version", 1, 1)), 2, 0)
    assert (decision.reply.error_code, decision.records) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("level", [0, 1])
def test_the_raft_layers_feature_may_be_asked_to_be_what_it_is(level: int) -> None:
    node = one_node()
    node.controller.kraft_version = level
    decision = node.controller.decide(features(("kraft.version", level, 1)), 2, 0)
    assert (decision.reply.error_code, decision.records) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("upgrade_type", [1, 2, 3])
def test_a_feature_that_nobody_knows_is_not_found_even_at_level_0(upgrade_type: int) -> None:
    """At level 0 every node supports it; the words are Apache Kafka's."""
    decision = one_node().controller.decide(features(("unknown.version", 0, upgrade_type)), 2, 0)
    assert (decision.reply.error_code, decision.records) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert decision.reply.error_message.endswith("feature unknown.version. Feature unknown.version not found.")


def test_the_name_of_a_feature_may_be_too_long_to_be_repeated() -> None:
    decision = one_node().controller.decide(features(("x" * 32767, 1, 1)), 2, 0)
    assert (decision.reply.error_code, decision.reply.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


ELR = "eligible.leader.replicas.version"
OFF, ON = features((ELR, 0, 2)), features((ELR, 1, 1))


def test_who_was_eligible_to_lead_is_not_when_the_feature_was_off_in_between() -> None:
    """Meanwhile the ISR may have committed alone: `min.insync.replicas` can be lowered, and nobody notes it."""
    node = orders(1, 2, min_insync_replicas="2")
    node.heartbeat(2, want_fence=True)
    assert partition(node).eligible_leader_replicas == (2,)
    node.ask(OFF)
    assert (partition(node).isr, partition(node).eligible_leader_replicas) == ((1,), ())
    node.ask(alter((2, "orders", (0, "min.insync.replicas", "1"))))
    node.ask(ON)
    node.heartbeat(1, want_fence=True)
    node.heartbeat(2)
    assert (partition(node).leader, partition(node).isr, partition(node).eligible_leader_replicas) == (-1, (), (1,))
    node.heartbeat(1)
    assert partition(node).leader == 1


def test_a_partition_that_only_eligible_leaders_can_lead_has_them_in_its_isr_without_the_feature() -> None:
    node = orders(1, 2, min_insync_replicas="2")
    node.heartbeat(2, want_fence=True)
    node.heartbeat(1, want_fence=True)
    before = partition(node)
    assert (before.leader, before.isr, before.eligible_leader_replicas) == (-1, (), (1, 2))
    node.ask(OFF)
    assert (partition(node).isr, partition(node).eligible_leader_replicas) == ((1, 2), ())
    node.heartbeat(2)
    assert partition(node).leader == 2


def test_eligible_leaders_of_a_log_in_which_the_feature_was_just_switched_off_are_cleared_when_it_is_on_again() -> None:
    """As Apache Kafka switches it off. A snapshot in between knows them as the log does."""
    node = orders(1, 2, min_insync_replicas="2")
    node.heartbeat(2, want_fence=True)
    node.image.replay(FeatureLevelRecord(name=ELR, feature_level=0))
    again = MetadataImage()
    for record in node.image.snapshot_records():
        again.replay(record.message)
    assert again.topics.by_name["orders"].partitions[0] == partition(node)
    assert partition(node).eligible_leader_replicas == (2,)
    node.ask(ON)
    assert (partition(node).isr, partition(node).eligible_leader_replicas) == ((1,), ())
