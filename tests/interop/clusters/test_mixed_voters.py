"""Voters that are data (KIP-853), of both kinds: each kind joins the other's quorum by itself."""

from pathlib import Path

import pytest

from ottla.admin import NewTopic
from ottla.client.blocking.admin import Admin
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
