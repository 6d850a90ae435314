"""Who leads when all replicas were down (KIP-966): eligible leaders, the last known leader, and unclean elections.

One controller, which stays, and three brokers that go one after the other. `GONE_FIRST` has not the last records.
"""

from collections.abc import Callable, Iterator

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.local_cluster.cluster_making import make_cores
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, described, eventually
from tests.cluster.programs_of_a_cluster import tool

GONE_FIRST, GONE_NEXT, GONE_LAST = 1, 2, 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    directory = tmp_path_factory.mktemp("cluster")
    with ClusterOfProcesses(directory, nodes=make_cores(directory, 3, port=0)) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: ClusterOfProcesses) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        yield admin


def create(admin: Admin, cluster: ClusterOfProcesses, topic: str, **configs: str) -> None:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(topic, 1, 3, config=settings)]).raise_first()
    eventually(lambda: cluster.isr_of(topic) == [1, 2, 3], f"{topic} is in sync")


def write(cluster: ClusterOfProcesses, topic: str, numbers: range) -> None:
    """Returns when all are acknowledged."""
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        sent = [producer.send(topic, b"%d" % number, partition=0) for number in numbers]
        producer.flush()
        for one in sent:
            one.result(0)


def read(cluster: ClusterOfProcesses, topic: str, count: int) -> list[int]:
    found: list[int] = []
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning(TopicPartition(topic, 0))

        def look() -> bool:
            found.extend(int(record.value) for record in consumer.poll(0.2))
            return len(found) >= count

        eventually(look, f"{count} records of {topic} are read")
    return found


def shows(
    capsys: pytest.CaptureFixture[str], cluster: ClusterOfProcesses, topic: str, **wanted: str
) -> Callable[[], bool]:
    """Whether kafka-topics shows that of the one partition, whichever broker it asks."""

    def look() -> bool:
        lines = tool(capsys, "topics", cluster, "--describe", "--topic", topic).splitlines()
        (shown,) = [line for line in lines if "Partition: 0" in line]
        cells = {key: value.strip() for key, _, value in (cell.partition(":") for cell in shown.strip().split("\t"))}
        return {key: cells[key] for key in wanted} == wanted

    return look


def leader(admin: Admin, topic: str) -> int | None:
    return described(admin, topic).partitions[0].leader


def test_an_eligible_leader_that_stopped_cleanly_leads_and_has_all_that_was_acknowledged(
    cluster: ClusterOfProcesses, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    create(admin, cluster, "clean", min_insync_replicas="2")
    write(cluster, "clean", range(20))
    cluster.stop(GONE_FIRST)
    write(cluster, "clean", range(20, 40))
    cluster.stop(GONE_NEXT)
    eventually(lambda: cluster.isr_of("clean") == [GONE_LAST], "one is left in sync")
    eventually(shows(capsys, cluster, "clean", Isr="3", Elr="2", LastKnownElr=""), "the other one is eligible")
    cluster.stop(GONE_LAST)

    cluster.start(GONE_FIRST)
    left = shows(capsys, cluster, "clean", Leader="none", Isr="", Elr="2,3", LastKnownElr="3")
    eventually(left, "one that is not eligible does not lead")
    cluster.start(GONE_NEXT)
    eventually(lambda: leader(admin, "clean") == GONE_NEXT, "the eligible leader leads")
    eventually(lambda: cluster.isr_of("clean") == [GONE_FIRST, GONE_NEXT], "the other one follows it")
    assert read(cluster, "clean", 40) == list(range(40))
    cluster.start(GONE_LAST)
    eventually(lambda: cluster.isr_of("clean") == [1, 2, 3], "all are in sync again")
    eventually(shows(capsys, cluster, "clean", Elr=""), "nobody is only eligible any more")


def test_after_kills_of_all_the_last_known_leader_leads(
    cluster: ClusterOfProcesses, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    create(admin, cluster, "killed", min_insync_replicas="2")
    write(cluster, "killed", range(20))
    cluster.kill(GONE_FIRST)
    eventually(lambda: cluster.isr_of("killed") == [GONE_NEXT, GONE_LAST], "two are left in sync")
    write(cluster, "killed", range(20, 40))
    cluster.kill(GONE_NEXT)
    eventually(lambda: cluster.isr_of("killed") == [GONE_LAST], "one is left in sync")
    cluster.kill(GONE_LAST)

    cluster.start(GONE_FIRST)
    eventually(shows(capsys, cluster, "killed", Leader="none", Elr="2,3"), "one that is not eligible does not lead")
    cluster.start(GONE_NEXT)
    left = shows(capsys, cluster, "killed", Leader="none", Elr="3", LastKnownElr="3")
    eventually(left, "one that may have lost records when it was killed is eligible no more")
    cluster.start(GONE_LAST)
    eventually(lambda: leader(admin, "killed") == GONE_LAST, "the last known leader leads")
    eventually(lambda: cluster.isr_of("killed") == [1, 2, 3], "the others follow it")
    assert read(cluster, "killed", 40) == list(range(40))


def test_a_replica_out_of_sync_leads_where_it_is_allowed_or_ordered(
    cluster: ClusterOfProcesses, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    create(admin, cluster, "allowed", min_insync_replicas="1", unclean_leader_election_enable="true")
    create(admin, cluster, "allowed-later", min_insync_replicas="1")
    create(admin, cluster, "ordered", min_insync_replicas="1")
    topics = ("allowed", "allowed-later", "ordered")
    for topic in topics:
        write(cluster, topic, range(10))
    cluster.stop(GONE_FIRST)
    cluster.stop(GONE_NEXT)
    for topic in topics:
        write(cluster, topic, range(10, 20))
    cluster.kill(GONE_LAST)

    cluster.start(GONE_FIRST)
    eventually(lambda: leader(admin, "allowed") == GONE_FIRST, "the topic allows it")
    for topic in topics[1:]:
        eventually(lambda topic=topic: leader(admin, topic) is None, "the others do not")
    add = ["--add-config", "unclean.leader.election.enable=true"]
    tool(capsys, "configs", cluster, "--alter", "--entity-type", "topics", "--entity-name", "allowed-later", *add)
    eventually(lambda: leader(admin, "allowed-later") == GONE_FIRST, "the topic allows it now")
    assert leader(admin, "ordered") is None
    words = ["--election-type", "unclean", "--topic", "ordered", "--partition", "0"]
    tool(capsys, "leader-election", cluster, *words)
    eventually(lambda: leader(admin, "ordered") == GONE_FIRST, "an operator has ordered it")

    for topic in topics:
        write(cluster, topic, range(30, 40))
    cluster.start(GONE_NEXT, GONE_LAST)
    for topic in topics:  # What the leader did not have is cut off where it was.
        eventually(lambda topic=topic: cluster.isr_of(topic) == [1, 2, 3], "all are in sync")
        assert read(cluster, topic, 20) == [*range(10), *range(30, 40)]
    cluster.stop(GONE_FIRST)
    for topic in topics:  # The others have the same.
        assert read(cluster, topic, 20) == [*range(10), *range(30, 40)]
