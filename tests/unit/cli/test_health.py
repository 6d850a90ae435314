"""`ottla health`: each thing that may be wrong with a cluster is named, and the exit code says whether one is."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING
from ottla.cli.health.cluster_checks import check_cluster
from ottla.cli.health.health_command import main
from ottla.client.errors import ClusterAuthorizationFailed

NOW_MS = 1_700_000_000_000


class Found(dict):
    """As the results of an admin's call."""

    @property
    def succeeded(self) -> dict[Any, Any]:
        return self

    def raise_first(self) -> "Found":
        return self


def partition(number: int, leader: int | None, replicas: tuple[int, ...], in_sync: tuple[int, ...]) -> SimpleNamespace:
    return SimpleNamespace(partition=number, leader=leader, replicas=replicas, in_sync_replicas=in_sync)


class StandInAdmin:
    """A cluster of three that is well. A test changes what is not."""

    def __init__(self) -> None:
        self.fenced: frozenset[int] = frozenset()
        self.partitions = [partition(0, 0, (0, 1, 2), (0, 1, 2))]
        self.voters = [self.voter(number) for number in range(3)]
        self.rooms = {0: (None, 50), 1: (None, 50), 2: (None, 50)}
        self.producers: list[SimpleNamespace] = []
        self.levels = {0: 30, 1: 30, 2: 30}

    def voter(self, number: int, fetched_ms: int = NOW_MS, end: int = 100) -> SimpleNamespace:
        return SimpleNamespace(replica_id=number, last_fetch_timestamp_ms=fetched_ms, log_end_offset=end)

    def describe_cluster(self, **_: object) -> SimpleNamespace:
        nodes = [SimpleNamespace(id=number, host="localhost", port=1) for number in range(3)]
        return SimpleNamespace(cluster_id="abc", nodes=nodes, fenced=self.fenced)

    def list_topics(self, **_: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="orders")]

    def describe_topics(self, _names: object) -> Found:
        return Found(orders=SimpleNamespace(name="orders", partitions=self.partitions))

    def describe_configs(self, resources: dict[Any, object]) -> Found:
        return Found({one: {"min.insync.replicas": SimpleNamespace(value="2")} for one in resources})

    def describe_metadata_quorum(self) -> SimpleNamespace:
        return SimpleNamespace(leader_id=0, leader_epoch=7, voters=self.voters)

    def describe_log_dirs(self, *_: object) -> Found:
        return Found(
            {
                broker: {
                    "/data": SimpleNamespace(
                        error=error, total_bytes=100, usable_bytes=free, replicas={}, is_cordoned=False
                    )
                }
                for broker, (error, free) in self.rooms.items()
            }
        )

    def list_offsets(self, _partitions: object) -> Found:
        return Found()

    def list_consumer_groups(self) -> list[object]:
        return []

    def describe_producers(self, partitions: list[object], **_: object) -> Found:
        return Found({partitions[0]: tuple(self.producers)})

    def list_transactions(self, **_: object) -> list[object]:
        return []

    def describe_features(self, node_id: int) -> SimpleNamespace:
        levels = SimpleNamespace(low=1, high=self.levels[node_id])
        return SimpleNamespace(supported={"metadata.version": levels}, finalized={"metadata.version": levels})


CLUSTER = SimpleNamespace(setting=lambda _name: None)


def looked_at(admin: StandInAdmin) -> dict[str, tuple[str, str]]:
    return {one.area: (one.level, one.what) for one in check_cluster(CLUSTER, admin, 300)}


def test_a_cluster_that_is_well() -> None:
    found = looked_at(StandInAdmin())
    assert {level for level, _ in found.values()} == {OK}
    assert found["nodes"] == (OK, "3 brokers of cluster abc up")
    assert found["partitions"] == (OK, "1 partition of 1 topic, all in sync")
    assert found["quorum"] == (OK, "3 controllers, 0 leads in epoch 7")


def test_fenced_brokers_are_named() -> None:
    admin = StandInAdmin()
    admin.fenced = frozenset({2})
    assert looked_at(admin)["nodes"] == (PROBLEM, "2 brokers of cluster abc up; fenced: broker 2")


def test_a_controller_that_is_silent_and_how_many_more_may_be_lost() -> None:
    admin = StandInAdmin()
    admin.voters[2] = admin.voter(2, fetched_ms=NOW_MS - 2_000)
    assert looked_at(admin)["quorum"][0] == OK
    admin.voters[2] = admin.voter(2, fetched_ms=NOW_MS - 4_000)
    level, what = looked_at(admin)["quorum"]
    assert level == PROBLEM
    assert what.endswith("silent: 2; one more loss stops the cluster")
    admin.voters[2] = admin.voter(2, end=100)
    admin.voters[0] = admin.voter(0, end=5000)
    assert looked_at(admin)["quorum"][0] == WARNING


def test_partitions_without_a_leader_too_few_in_sync_and_under_replicated() -> None:
    admin = StandInAdmin()
    admin.partitions += [
        partition(1, None, (0, 1, 2), (1,)),
        partition(2, 0, (0, 1, 2), (0,)),
        partition(3, 0, (0, 1, 2), (0, 1)),
    ]
    found = looked_at(admin)
    assert found["offline"] == (PROBLEM, "1 partition without a leader: orders-1")
    assert found["min ISR"] == (PROBLEM, "1 partition with too few replicas in sync, writes fail: orders-2")
    assert found["replicas"] == (PROBLEM, "2 partitions under-replicated: orders-2, orders-3")


def test_disks_that_failed_are_full_or_have_little_room() -> None:
    admin = StandInAdmin()
    admin.rooms[1] = (None, 9)
    assert looked_at(admin)["disks"] == (WARNING, "little room: broker 1 /data (9 B of 100 B free)")
    admin.rooms[1] = (None, 2)
    assert looked_at(admin)["disks"][0] == PROBLEM
    admin.rooms[1] = (OSError("gone"), 50)
    assert looked_at(admin)["disks"] == (PROBLEM, "failed: broker 1 /data")


def test_a_transaction_that_hangs() -> None:
    admin = StandInAdmin()
    admin.producers = [
        SimpleNamespace(producer_id=7, current_transaction_start_offset=3, last_timestamp_ms=1, coordinator_epoch=0)
    ]
    assert looked_at(admin)["transactions"] == (PROBLEM, "1 hang: orders-0")


def test_brokers_of_different_versions() -> None:
    admin = StandInAdmin()
    admin.levels[2] = 29
    assert looked_at(admin)["features"] == (WARNING, "brokers of different versions: brokers 0, 1; brokers 2")


def test_what_may_not_be_looked_at_is_a_note() -> None:
    admin = StandInAdmin()

    def refused(*_: object, **__: object) -> None:
        raise ClusterAuthorizationFailed("not for you")

    admin.describe_log_dirs = refused
    level, what = looked_at(admin)["disks"]
    assert level == NOTE
    assert "not for you" in what


def test_the_exit_code_and_the_json_say_whether_all_is_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from contextlib import nullcontext

    from ottla.cli.health import health_command

    admin = StandInAdmin()
    stand_in = SimpleNamespace(of=lambda *_: SimpleNamespace(admin=lambda: nullcontext(admin), setting=lambda _: None))
    monkeypatch.setattr(health_command, "Cluster", stand_in)
    assert main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["well"] is True
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "the cluster is well"
    admin.fenced = frozenset({2})
    assert main(["--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["well"], told["counts"]["problem"]) == (False, 1)
    assert main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 problem"
