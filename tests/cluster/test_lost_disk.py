"""A node that has lost its disk comes back empty: its records are fetched again, and its vote is given to it anew.

The steps are those of docs/cluster.md.
"""

import shutil
from pathlib import Path

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.cluster.metadata_quorum import main as metadata_quorum
from ottla.cli.storage import main as storage
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually

LOST = 3
TOPIC = "orders"
RECORDS = 300


def read_all(cluster: ClusterOfProcesses) -> list[int]:
    found: list[int] = []
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)

        def read() -> bool:
            found.extend(int(record.value) for record in consumer.poll(0.2))
            return len(found) >= RECORDS

        eventually(read, f"{RECORDS} records are read")
    return found


def test_a_node_with_a_new_disk_has_its_records_and_its_vote_again(tmp_path: Path) -> None:
    with ClusterOfProcesses(tmp_path) as cluster, Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3)]).raise_first()
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number, partition=0)
        eventually(lambda: cluster.isr_of(TOPIC) == [1, 2, 3], "all are in sync")
        node = cluster.nodes[LOST]
        cluster.kill(LOST)
        shutil.rmtree(node.data)
        words = ["format", "-t", cluster.cluster_id, "-c", str(node.properties), "--no-initial-controllers"]
        assert storage(words) == 0
        cluster.start(LOST)
        eventually(lambda: cluster.isr_of(TOPIC) == [1, 2, 3], "the records are fetched again")
        eventually(
            lambda: LOST in [observer.replica_id for observer in admin.describe_metadata_quorum().observers],
            "the node follows the quorum",
        )
        (old,) = [voter for voter in admin.describe_metadata_quorum().voters if voter.replica_id == LOST]
        admin.remove_raft_voter(LOST, old.directory_id)
        server = ["--bootstrap-server", cluster.nodes[1].address, "--command-config", str(node.properties)]
        eventually(lambda: metadata_quorum([*server, "add-controller"]) == 0, "the node has a vote")
        voters = {voter.replica_id: voter.directory_id for voter in admin.describe_metadata_quorum().voters}
        assert sorted(voters) == [1, 2, 3]
        assert voters[LOST] != old.directory_id
        cluster.kill(1)  # the vote counts, and the records are there
        eventually(lambda: cluster.isr_of(TOPIC) == [2, 3], "the others go on")
        assert read_all(cluster) == list(range(RECORDS))
