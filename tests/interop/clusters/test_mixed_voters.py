"""Voters that are data (KIP-853), of both kinds: each kind joins the other's quorum by itself."""

import signal
from pathlib import Path

import pytest

from ottla.admin import NewTopic
from ottla.client.blocking.admin import Admin
from ottla.errors import KafkaError
from tests.interop.mixed_cluster import APACHE_KAFKA, OURS, MixedCluster, eventually

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(("founder", "joiner"), [(OURS, APACHE_KAFKA), (APACHE_KAFKA, OURS)])
def test_a_controller_joins_the_quorum_of_the_other_kind(tmp_path: Path, founder: str, joiner: str) -> None:
    with (
        MixedCluster(tmp_path, {1: founder, 2: joiner}, founder=1) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        eventually(
            lambda: [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [1, 2],
            "the second controller is a voter",
        )
        eventually(lambda: len(admin.describe_cluster().nodes) == 2, "two brokers are there")
        admin.create_topics([NewTopic("orders", partitions=2, replication_factor=2)])["orders"]
        first = next(voter for voter in admin.describe_metadata_quorum().voters if voter.replica_id == 1)
        cluster.kill(1)
        cluster.start(1)
        eventually(
            lambda: (
                min(voter.log_end_offset for voter in admin.describe_metadata_quorum().voters) > first.log_end_offset
            ),
            "both have the metadata again",
        )
        assert {topic.name for topic in admin.list_topics()} == {"orders"}


def test_a_removed_leader_of_ours_is_voted_for_by_apache_kafka(tmp_path: Path) -> None:
    """It alone has the record that takes its vote, so the other one of two is not elected. Apache Kafka's leader would
    not stand in its place, and leave the two without a leader.
    """
    with (
        MixedCluster(tmp_path, {1: OURS, 2: APACHE_KAFKA}, founder=1) as cluster,
        Admin(bootstrap_servers=cluster.addresses[1], default_api_timeout_ms=5000) as admin,
    ):
        eventually(
            lambda: [voter.replica_id for voter in admin.describe_metadata_quorum().voters] == [1, 2],
            "the second controller is a voter",
        )
        eventually(lambda: len(admin.describe_cluster().nodes) == 2, "two brokers are there")
        quorum = admin.describe_metadata_quorum()
        assert quorum.leader_id == 1
        (leader,) = [voter for voter in quorum.voters if voter.replica_id == 1]
        cluster.processes[2].send_signal(signal.SIGSTOP)
        with pytest.raises(KafkaError):
            admin.remove_raft_voter(1, leader.directory_id or "")
        eventually(lambda: _has_no_leader(admin), "the leader has lost the lead")
        cluster.processes[2].send_signal(signal.SIGCONT)
        eventually(lambda: bool(admin.create_topics([NewTopic("orders")])["orders"]), "somebody leads again")
        eventually(lambda: admin.describe_metadata_quorum().leader_id == 2, "the other one leads")


def _has_no_leader(admin: Admin) -> bool:
    try:
        admin.describe_metadata_quorum()
    except KafkaError:
        return True
    return False
