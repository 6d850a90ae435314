"""`ottla balance`, `ottla node` and `ottla cluster roll` on clusters of processes, while programs write and read."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.balance import carrying_out, node_command
from ottla.cli.local_cluster.cluster_making import make_broker, make_cluster
from ottla.cli.local_cluster.node_process import running_pid
from ottla.cli.main import main
from ottla.client.admin.configs import ConfigResource, ConfigSource
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually
from tests.cluster.programs_of_a_cluster import Reading, Writing, assert_nothing_is_lost_or_repeated


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterOfProcesses]:
    """Three nodes, and a fourth that is a broker alone."""
    directory = tmp_path / "cluster"
    nodes = make_cluster(directory, 3, port=0)
    nodes.append(make_broker(directory, nodes))
    with ClusterOfProcesses(directory, nodes=nodes) as running:
        yield running


def fill(cluster: ClusterOfProcesses) -> None:
    """Everything is on the first three, and the first leads all of it."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assignment = dict.fromkeys(range(8), (1, 2, 3))
        config = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic("filled", assignment=assignment, config=config)]).raise_first()
        busy = dict.fromkeys(range(3), (1, 2, 3))
        admin.create_topics([NewTopic("busy", assignment=busy, config=config)]).raise_first()
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=5) as producer:
        for number in range(8000):
            producer.send("filled", bytes(1000), partition=number % 8)


def replicas(cluster: ClusterOfProcesses, *topics: str) -> dict[TopicPartition, tuple[int, ...]]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return {
            TopicPartition(topic.name, one.partition): one.replicas
            for topic in admin.describe_topics(topics).succeeded.values()
            for one in topic.partitions
        }


def moved_from(cluster: ClusterOfProcesses, before: dict[TopicPartition, tuple[int, ...]]) -> list[TopicPartition]:
    return [at for at, of in replicas(cluster, "filled").items() if of != before[at]]


def leaders(cluster: ClusterOfProcesses) -> Counter[int | None]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        names = [one.name for one in admin.list_topics(include_internal=True)]
        return Counter(one.leader for topic in admin.describe_topics(names).values() for one in topic.partitions)


def throttles(cluster: ClusterOfProcesses) -> list[str]:
    """Settings that limit moves, and that somebody forgot."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        resources = [ConfigResource.topic(one.name) for one in admin.list_topics(include_internal=True)]
        resources += [ConfigResource.broker(node.id) for node in admin.describe_cluster().nodes]
        changed = {ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER}
        return [
            f"{resource.name}: {name}={one.value}"
            for resource, settings in admin.describe_configs(resources).items()
            for name, one in settings.items()
            if "throttled" in name and one.value and one.source in changed
        ]


def run(cluster: ClusterOfProcesses, *words: str, status: int = 0) -> None:
    found = main([*words, "-b", cluster.bootstrap])
    assert found == status, words


def test_balance_drain_and_remove_under_load(
    cluster: ClusterOfProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(cluster)
    before = replicas(cluster, "filled", "busy")
    writing, reading = Writing(cluster, "busy"), Reading(cluster, "busy")
    writing.wait_for_more()
    # Nothing is changed unless it is asked for.
    run(cluster, "balance", "--sample", "1")
    assert "Nothing was changed" in capsys.readouterr().out
    assert replicas(cluster, "filled", "busy") == before
    run(cluster, "balance", "--sample", "1", "--throttle", "20M", "--at-once", "3", "--execute", "--save", "plan.json")
    printed = capsys.readouterr().out
    assert "brings everything back" in printed

    def is_spread() -> bool:
        found = Counter(broker for of in replicas(cluster, "filled", "busy").values() for broker in of)
        return len(found) == 4 and max(found.values()) - min(found.values()) <= 3

    eventually(is_spread, "all have their share")
    eventually(lambda: leaders(cluster).keys() == {1, 2, 3, 4}, "all lead")
    assert throttles(cluster) == []
    writing.wait_for_more()
    # And back.
    run(cluster, "balance", "--undo", "plan.json", "--execute")
    assert "`ottla balance --plan plan.json --execute` carries the plan out again" in capsys.readouterr().out
    eventually(lambda: replicas(cluster, "filled", "busy") == before, "all is where it was")
    assert throttles(cluster) == []
    # A plan that was made by hand does not say what was before: what it is undone with is written first.
    by_hand = [{"topic": "filled", "partition": 0, "replicas": [4, 2, 3]}]
    Path("by-hand.json").write_text(json.dumps({"version": 1, "partitions": by_hand}))
    run(cluster, "balance", "--plan", "by-hand.json", "--execute", "--save", "undo.json")
    assert "`ottla balance --undo undo.json --execute` brings everything back" in capsys.readouterr().out
    run(cluster, "balance", "--undo", "undo.json", "--execute")
    eventually(lambda: replicas(cluster, "filled", "busy") == before, "it is where it was")
    capsys.readouterr()
    run(cluster, "balance", "--plan", "plan.json", "--execute")
    writing.wait_for_more()
    # The fourth goes.
    run(cluster, "node", "drain", "4")
    assert "broker 4 has no replicas" in capsys.readouterr().out
    assert not any(4 in of for of in replicas(cluster, "filled", "busy", "__consumer_offsets").values())
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("later", 12, 1)]).raise_first()
    eventually(lambda: len(replicas(cluster, "later")) == 12, "the topic is known")
    assert not any(4 in of for of in replicas(cluster, "later").values()), "it gets nothing new"

    def stop_when_it_is_waited_for(seconds: float) -> None:
        if running_pid(cluster.nodes[4]) is not None:
            cluster.stop(4)
        time.sleep(seconds)

    monkeypatch.setattr(node_command, "sleep", stop_when_it_is_waited_for)
    run(cluster, "node", "remove", "4")
    printed = capsys.readouterr().out
    assert "stop node 4 now" in printed
    assert "broker 4 is not part of the cluster any more" in printed
    eventually(lambda: registered(cluster) == {1, 2, 3}, "it is forgotten")
    writing.wait_for_more()
    assert_nothing_is_lost_or_repeated(writing, reading)


def test_a_plan_that_is_stopped_leaves_nothing_under_way(
    cluster: ClusterOfProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(cluster)
    before = replicas(cluster, "filled")

    def interrupted(self: object, step: object, done: int) -> None:
        if done:
            raise KeyboardInterrupt
        wait(self, step, done)

    wait = carrying_out.CarryingOut._wait
    slow = ["balance", "--topic", "filled", "--goals", "disk", "--at-once", "2", "--execute", "--save", "plan.json"]
    with monkeypatch.context() as patched:
        patched.setattr(carrying_out.CarryingOut, "_wait", interrupted)
        run(cluster, *slow, "--throttle", "100k", status=130)
    told = capsys.readouterr().err
    assert "2 of " in told
    assert "ottla balance --undo plan.json --execute` brings it back" in told
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assert admin.list_partition_reassignments() == {}
    assert throttles(cluster) == []
    eventually(lambda: len(moved_from(cluster, before)) >= 2, "two are moved")
    moved = moved_from(cluster, before)
    plan = json.loads(Path("plan.json").read_text())["partitions"]
    # Those of the first step, and of the second what was over before it was cancelled.
    assert 2 <= len(moved) < len(plan)
    # The rest of the plan, by giving it again.
    run(cluster, "balance", "--plan", "plan.json", "--execute")
    wanted = {TopicPartition(one["topic"], one["partition"]): tuple(one["replicas"]) for one in plan}
    eventually(lambda: wanted.items() <= replicas(cluster, "filled").items(), "all of the plan is carried out")
    # To undo it may be interrupted as well: the same command continues.
    with monkeypatch.context() as patched:
        patched.setattr(carrying_out.CarryingOut, "_wait", interrupted)
        run(cluster, "balance", "--undo", "plan.json", "--execute", "--at-once", "2", status=130)
    assert "done; the same command continues" in capsys.readouterr().err
    run(cluster, "balance", "--undo", "plan.json", "--execute")
    eventually(lambda: replicas(cluster, "filled") == before, "all is where it was")
    run(cluster, "balance", "--plan", "plan.json", "--execute")
    eventually(lambda: wanted.items() <= replicas(cluster, "filled").items(), "all of the plan is carried out")
    after = replicas(cluster, "filled")
    # A process that was killed leaves a step under way, and throttled.
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        work = carrying_out.CarryingOut(admin, carrying_out.ProgressBar("x", is_quiet=True), throttle=1000, at_once=5)
        step = [carrying_out.Move(at, of, (4, *of[1:]), 1) for at, of in after.items() if 4 not in of][:2]
        # More than one fetch brings: the first one is held up by nothing.
        with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=5) as producer:
            for number in range(6000):
                producer.send("filled", bytes(1000), partition=step[number % 2].at.partition)
        work._throttle_step(step)
        work._begin(step)
        assert throttles(cluster)
        run(cluster, "balance", "--stop")
        assert "2 moves cancelled" in capsys.readouterr().out
        assert admin.list_partition_reassignments() == {}
    assert throttles(cluster) == []
    eventually(
        lambda: all(set(of) == set(after[at]) for at, of in replicas(cluster, "filled").items()), "nothing was moved"
    )


def test_a_plan_stops_when_a_broker_is_gone(
    cluster: ClusterOfProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(cluster)
    monkeypatch.setattr(carrying_out, "_CHECK_S", 0.2)
    killing = threading.Timer(2.0, cluster.kill, [4])
    killing.start()
    run(cluster, "balance", "--topic", "filled", "--sample", "0.1", "--throttle", "50k", "--execute", status=1)
    killing.join()
    told = capsys.readouterr().err
    assert "stopped, because something else is wrong: not up: broker 4" in told
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assert admin.list_partition_reassignments() == {}
        assert {node.id for node in admin.describe_cluster().nodes} == {1, 2, 3}
    assert "the throttle of broker 4 stays" in told
    cluster.start(4)
    run(cluster, "balance", "--stop")
    assert throttles(cluster) == []


def test_what_does_not_exist_is_named_and_nothing_is_changed(
    cluster: ClusterOfProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster)
    before = replicas(cluster, "filled")

    def refused(*words: str) -> str:
        capsys.readouterr()
        run(cluster, *words, status=1)
        assert replicas(cluster, "filled") == before
        return capsys.readouterr().err

    assert "broker 9 does not exist; brokers that are up: 1, 2, 3, 4" in refused("balance", "--brokers", "1,9")
    assert "broker 9 does not exist; there are 1, 2, 3, 4" in refused("node", "drain", "9")
    assert "node 1 is a controller: take its vote away first" in refused("node", "remove", "1")
    plan = tmp_path / "plan.json"
    cluster_id = cluster.cluster_id
    sound = {"topic": "filled", "partition": 0, "replicas": [2, 3, 4]}
    for wrong, complaint in (
        ({"topic": "filled", "partition": 1, "replicas": [2, 3, 9]}, "there is no broker 9"),
        ({"topic": "filled", "partition": 77, "replicas": [1, 2, 3]}, "there is no partition filled-77"),
        ({"topic": "none", "partition": 0, "replicas": [1, 2, 3]}, "there is no partition none-0"),
        ({"topic": "filled", "partition": 1, "replicas": [2, 2, 3]}, "has no replica, or a broker twice"),
        ({"topic": "filled", "partition": 1}, "it is not a plan"),
        ({"topic": "filled", "partition": 1, "replicas": [2]}, "filled-1 has 3 replicas, and would have 1"),
        (sound, "filled-0 is in it twice"),
    ):
        plan.write_text(json.dumps({"version": 1, "cluster_id": cluster_id, "partitions": [sound, wrong]}))
        assert complaint in refused("balance", "--plan", str(plan), "--execute"), complaint
    plan.write_text(json.dumps({"version": 1, "cluster_id": "other", "partitions": [sound]}))
    assert "is for cluster other" in refused("balance", "--plan", str(plan), "--execute")
    plan.write_text("no plan")
    assert "not JSON" in refused("balance", "--undo", str(plan), "--execute")
    # Three replicas do not fit on two brokers.
    assert "add a broker first" in refused("balance", "--brokers", "1,2", "--execute")
    cluster.kill(4)
    eventually(lambda: 4 in down(cluster), "broker 4 is fenced")
    plan.write_text(json.dumps({"version": 1, "partitions": [sound]}))
    assert "broker 4 is not up" in refused("balance", "--plan", str(plan), "--execute")


def registered(cluster: ClusterOfProcesses) -> set[int]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return {node.id for node in admin.describe_cluster(include_fenced_brokers=True).nodes}


def down(cluster: ClusterOfProcesses) -> frozenset[int]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return admin.describe_cluster(include_fenced_brokers=True).fenced


def test_nodes_are_restarted_one_at_a_time_under_load(
    cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster)
    pids = {number: node.pid.read_text() for number, node in cluster.nodes.items()}
    writing, reading = Writing(cluster, "busy"), Reading(cluster, "busy")
    writing.wait_for_more()
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        active = admin.describe_metadata_quorum().leader_id
    directory = next(iter(cluster.nodes.values())).directory.parent
    assert main(["cluster", "roll", "--data", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    order = [int(line.split()[1]) for line in lines]
    assert sorted(order) == [1, 2, 3, 4]
    assert order[-1] == active, "the active controller is the last"
    assert all(node.pid.read_text() != pids[number] for number, node in cluster.nodes.items())
    writing.wait_for_more()
    assert_nothing_is_lost_or_repeated(writing, reading)


def test_a_roll_stops_when_something_is_not_in_sync(
    cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.cli.local_cluster import rolling

    fill(cluster)
    monkeypatch.setattr(rolling, "_AT_FIRST_S", 0.5)
    directory = str(next(iter(cluster.nodes.values())).directory.parent)
    pids = {number: node.pid.read_text() for number, node in cluster.nodes.items()}
    assert main(["cluster", "roll", "--data", directory, "--only", "1,8"]) == 1
    assert "there is no node 8; there are 1, 2, 3, 4" in capsys.readouterr().err
    cluster.kill(3)
    eventually(lambda: 3 in down(cluster), "broker 3 is fenced")
    assert main(["cluster", "roll", "--data", directory]) == 1
    told = capsys.readouterr().err
    assert "not up: broker 3" in told
    assert "nothing was restarted" in told
    assert all(node.pid.read_text() == pids[number] for number, node in cluster.nodes.items())
    cluster.start(3)
    # With a command: one that fails, and one that does not bring the node back.
    words = ["cluster", "roll", "-b", cluster.bootstrap]
    assert main([*words, "--command", "echo restart {id} at {host}; exit 3"]) == 1
    assert "stopped: the command for node" in capsys.readouterr().err
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        active = admin.describe_metadata_quorum().leader_id
    victim = min({1, 2, 3} - {active})
    kill = f"kill -9 $(cat {cluster.nodes[victim].pid})"
    assert main([*words, "--only", f"{victim},4", "--command", kill, "--sync-timeout", "3"]) == 1
    assert f"(node {victim} was restarted; not restarted: 4)" in capsys.readouterr().err
