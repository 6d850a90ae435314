"""What a node cannot serve, for now or until its next start: others lead it, and it is tried again."""

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.fetchers import Fetchers
from ottla.log.directory import LogDirectory
from ottla.log.errors import CorruptFile
from ottla.log.files import write_file
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.directory_ids import LOST, MIGRATING, UNASSIGNED
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AssignReplicasToDirsResponse, PartitionRecord, TopicRecord
from tests.unit.broker.brokers import TestNode, batch, produce_request, topic_id_of, values_in
from tests.unit.broker.moving_nodes import IDS, in_one, moving_node, names_in
from tests.unit.broker.replicating_nodes import Cluster
from tests.unit.runtime.raising_once import Fault, raise_once

HOME = Uuid(b"h" * 16)
PASSING = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT]
NAMES = [errno.errorcode[code] for code in PASSING]


def lone_node(**settings: str) -> TestNode:
    node = TestNode(directory_ids={"/data": HOME}, **settings)
    node.broker.identity.broker_epoch = 7
    node.controller.replies = [AssignReplicasToDirsResponse()] * 20
    return node


def assigned(node: TestNode) -> list[Uuid]:
    return [directory.id for request in node.controller.asked for directory in request.directories]


def cluster_of(count: int = 3) -> Cluster:
    """In which every replica is where the metadata says."""
    cluster = Cluster(count)
    for node in cluster.nodes.values():
        node.broker.identity.directory_ids = {"/data": HOME}
    cluster.create_topic(replicas=tuple(range(1, count + 1)), min_insync_replicas="1")
    cluster.advance(1000)
    return cluster


def leader(cluster: Cluster) -> int:
    return cluster.image.topics.by_name["orders"].partitions[0].leader


def directories(cluster: Cluster) -> list[Uuid]:
    partition = cluster.image.topics.by_name["orders"].partitions[0]
    return [partition.directory(replica) for replica in partition.replicas]


def fail(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, code: int, *, only: object = None) -> None:
    real = getattr(owner, method)

    def failing(self, *arguments, **fields):
        if only is None or self is only:
            raise OSError(code, os.strerror(code))
        return real(self, *arguments, **fields)

    monkeypatch.setattr(owner, method, failing)


# New replicas


@pytest.mark.parametrize("code", PASSING, ids=NAMES)
def test_a_replica_that_cannot_be_made_for_now_is_told_of_and_made_later(code: int) -> None:
    node = lone_node()
    node.register_broker(2, "b", 9092)
    node.disk.fail_next("create", code)  # type: ignore[attr-defined]
    node.create_topic("orders", replicas=(1, 2), directories=(HOME, HOME))
    assert node.broker.partitions.offline == {("orders", 0)}
    node.timers.advance(100)
    assert assigned(node) == [LOST]
    node.timers.advance(1000)
    assert node.produce(batch(b"x"), acks=1).error_code == ErrorCode.NONE
    assert assigned(node) == [LOST, HOME], "others may have it lead again"


def test_of_a_replica_that_nobody_else_could_lead_nothing_is_told() -> None:
    cluster = Cluster(1)
    cluster[1].broker.identity.directory_ids = {"/data": HOME}
    cluster[1].disk.fail_next("create", errno.ENOSPC)  # type: ignore[attr-defined]
    cluster.create_topic(replicas=(1,))
    cluster.advance(100)
    assert (cluster[1].partition(), leader(cluster)) == (None, 1)
    cluster.advance(2000)
    assert (leader(cluster), directories(cluster)) == (1, [HOME])
    assert cluster[1].produce(batch(b"x")).error_code == ErrorCode.NONE


def test_a_replica_that_is_found_again_leads_if_nobody_else_can() -> None:
    """All the others were gone by the time that the controller heard that it is lost."""
    cluster = cluster_of(2)
    cluster.kill(2)
    cluster[1].broker.directory_assignments.lose(topic_id_of("orders"), 0)
    cluster.advance(1000)
    assert leader(cluster) == -1
    image = cluster[1].image.topics.by_name["orders"].partitions[0]
    cluster[1].broker.directory_assignments.note(cluster[1].partition(), image)
    cluster.advance(1000)
    assert leader(cluster) == 1


def test_it_is_tried_again_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    node = lone_node()
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "open", errno.ENOSPC)
        node.create_topic("orders", directories=(HOME,))
        node.timers.advance(600_000)
        assert node.partition() is None
    node.timers.advance(60_000)
    assert node.produce(batch(b"x")).error_code == ErrorCode.NONE
    assert node.broker.partitions.offline == set()


@pytest.mark.parametrize("call", ["create", "write"])
@pytest.mark.parametrize("is_left", [True, False], ids=["what was made stays", "what was made is removed"])
def test_one_that_is_made_elsewhere_is_there_after_a_restart_whether_or_not_that_was_told(
    monkeypatch: pytest.MonkeyPatch, call: str, is_left: bool
) -> None:
    node = moving_node()
    node.controller.hold()
    if is_left:
        fail(monkeypatch, LogDirectory, "_remove_dir", errno.EMFILE)
    node.disk.fail_next(call, errno.ENOSPC)  # type: ignore[attr-defined]
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(1000)
    assert node.partition().directory == "/two"
    assert names_in(node, "/one") == (["orders-0"] if is_left else [])
    node.produce(batch(b"x"))
    again = moving_node(node.disk.survivor_of_kill(), node.image)
    assert (again.partition().directory, values_in(again.fetch())) == ("/two", [b"x"])


@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_is_made_when_the_logs_are_about_to_be_closed(when: str) -> None:
    """A disk thread may come back with what it could not make after that, too."""
    node = lone_node()
    node.disk.fail_next("create", errno.EMFILE)  # type: ignore[attr-defined]
    if when == "before":
        node.create_topic("orders", directories=(HOME,))
    node.broker.replicas.stop()
    if when == "after":
        node.create_topic("orders", directories=(HOME,))
    node.timers.advance(60_000)
    assert node.partition() is None


def test_one_that_is_deleted_meanwhile_is_not_made() -> None:
    node = lone_node()
    node.disk.fail_next("create", errno.EMFILE)  # type: ignore[attr-defined]
    node.create_topic("orders", directories=(HOME,))
    node.delete_topic("orders")
    node.timers.advance(60_000)
    assert (node.partition(), node.broker.partitions.offline) == (None, set())


def test_a_replica_over_which_making_raises_keeps_no_other_from_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    node = lone_node()
    raise_once(monkeypatch, PartitionLog, "advance_high_watermark")
    node.create_topic("orders", partitions=3, directories=(HOME,))
    with pytest.raises(Fault):
        node.timers.advance(1)
    assert [node.produce(batch(b"x"), index=index).error_code for index in (1, 2)] == [ErrorCode.NONE] * 2
    assert node.broker.partitions.offline == {("orders", 0)}


# Leading


@pytest.mark.parametrize("code", PASSING, ids=NAMES)
def test_a_leader_that_cannot_begin_its_epoch_for_now_leads_later(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    node = lone_node()
    node.create_topic("orders", replicas=(1, 2), isr=(1,), leader=2)
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "begin_leader_epoch", code)
        node.change_partition(leader=1)
        node.timers.advance(100)
        assert node.produce(batch(b"x")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    node.timers.advance(60_000)
    assert node.produce(batch(b"x")).error_code == ErrorCode.NONE


@pytest.mark.parametrize("code", PASSING, ids=NAMES)
def test_another_leads_what_a_leader_cannot_write_to(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    cluster = cluster_of(3)
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "append_as_leader", code, only=cluster[1].partition().log)
        fail(full, PartitionLog, "append_as_follower", code, only=cluster[1].partition().log)
        assert cluster[1].produce(batch(b"x"), acks=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        cluster.advance(1000)
        assert leader(cluster) == 2
        assert cluster[2].produce(batch(b"y"), acks=1).error_code == ErrorCode.NONE
        cluster.advance(5000)
        assert cluster.isr() == (2, 3)
        assert directories(cluster)[0] == HOME, "it follows, as well as it can"
    cluster.advance(5000)
    assert set(cluster.isr()) == {1, 2, 3}, "there is room again"


@pytest.mark.parametrize("code", PASSING, ids=NAMES)
def test_a_follower_that_cannot_write_leaves_the_isr_at_once_and_is_back_when_it_has_all(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Producers with acks=all do not wait for it until `replica.lag.time.max.ms` is over."""
    cluster = cluster_of(3)
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "append_as_follower", code, only=cluster[2].partition().log)
        reply = cluster[1].ask(produce_request(batch(b"x")), 12)
        cluster.advance(1000)
        assert (cluster.isr(), leader(cluster), reply.is_here) == ((1, 3), 1, True)
        assert directories(cluster)[1] == HOME, "it follows, as well as it can"
        cluster.advance(60_000)
        assert cluster.isr() == (1, 3), "it lacks what is committed"
    cluster.advance(60_000)
    assert set(cluster.isr()) == {1, 2, 3}, "there is room again"
    assert cluster[2].partition().log.log_end_offset == 1


def test_the_last_in_the_isr_goes_on_with_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(1)
    cluster[1].produce(batch(b"x"))
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "append_as_leader", errno.ENOSPC)
        assert cluster[1].produce(batch(b"y")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        cluster.advance(1000)
    assert leader(cluster) == 1
    assert cluster[1].fetch(0).high_watermark == 1
    assert cluster[1].produce(batch(b"y")).error_code == ErrorCode.NONE


def test_while_nobody_has_room_a_partition_does_not_go_round_from_one_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time is a record for the metadata log, whose disk may be as full."""
    cluster = cluster_of(3)
    with monkeypatch.context() as full:
        fail(full, PartitionLog, "append_as_leader", errno.ENOSPC)
        for _ in range(600):
            if leader(cluster) > 0:
                cluster[leader(cluster)].produce(batch(b"x"), acks=1)
            cluster.advance(1000)
        assert cluster.image.topics.by_name["orders"].partitions[0].leader_epoch < 60
    cluster.advance(5000)
    assert cluster[leader(cluster)].produce(batch(b"x"), acks=1).error_code == ErrorCode.NONE


def test_another_leads_what_is_broken_until_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(2)
    raise_once(monkeypatch, PartitionLog, "append_as_leader")
    assert cluster[1].produce(batch(b"x"), acks=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.advance(1000)
    assert (leader(cluster), cluster.isr(), directories(cluster)[0]) == (2, (2,), LOST)
    cluster.kill(1)
    cluster.start(1)
    cluster[1].broker.identity.directory_ids = {"/data": HOME}
    cluster[1].broker.replicas.start()
    cluster.advance(5000)
    assert (set(cluster.isr()), directories(cluster)[0]) == ({1, 2}, HOME)


def test_a_topic_that_takes_the_name_of_one_with_a_broken_partition_begins_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    node.produce(batch(b"of the topic before"))
    raise_once(monkeypatch, PartitionLog, "append_as_leader")
    node.produce(batch(b"x"))
    node.delete_topic("orders")
    node.timers.advance(100_000)
    node.create_topic("orders", directories=(HOME,))
    node.timers.advance(1000)
    assert node.produce(batch(b"new")).error_code == ErrorCode.NONE
    assert values_in(node.fetch()) == [b"new"]
    node.broker.partitions.logs.close(7)
    again = TestNode(node.disk, node.image, directory_ids={"/data": HOME})
    assert again.broker.partitions.logs.epoch_of_clean_stop() == 7
    assert values_in(again.fetch()) == [b"new"]


def test_a_broken_replica_that_goes_and_comes_back_begins_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    node.produce(batch(b"x"))
    raise_once(monkeypatch, PartitionLog, "append_as_leader")
    node.produce(batch(b"y"))
    node.change_partition(replicas=[2], isr=[2], leader=2, directories=[HOME])
    node.change_partition(replicas=[1, 2], directories=[HOME, HOME])
    node.timers.advance(1000)
    assert node.partition().log.log_end_offset == 0


def test_what_is_wrong_with_a_partition_that_is_gone_costs_no_other_of_its_name() -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    gone = node.partition()
    node.delete_topic("orders")
    node.create_topic("orders", directories=(HOME,))
    node.timers.advance(100_000)
    node.broker.partitions.on_broken(gone, Fault("a flush that came late"))
    assert node.produce(batch(b"x")).error_code == ErrorCode.NONE


# Metadata


def test_a_partition_that_raises_over_its_metadata_is_offline_and_the_others_take_up_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = lone_node()
    node.register_broker(2, "b", 9092)
    node.create_topic("orders", partitions=3, replicas=(1, 2), leader=2)
    raise_once(monkeypatch, Partition, "on_image")
    node.commit(*(_elected(index) for index in range(3)))
    assert node.broker.partitions.offline == {TopicPartition("orders", 0)}
    assert [node.produce(batch(b"x"), index=index, acks=1).error_code for index in (1, 2)] == [ErrorCode.NONE] * 2
    node.timers.advance(100)
    assert LOST in assigned(node)


def test_a_part_of_the_broker_that_raises_over_one_partition_hears_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = lone_node()
    node.create_topic("orders", partitions=3, replicas=(1, 2), isr=(1,), leader=2)
    calls = raise_once(monkeypatch, Fetchers, "on_leadership")
    node.commit(*(_elected(index) for index in range(3)))
    assert len(calls) == 3
    with pytest.raises(Fault):
        node.timers.advance(1)


def _elected(index: int):
    from ottla.wire.messages import PartitionChangeRecord

    return PartitionChangeRecord(topic_id=topic_id_of("orders"), partition_id=index, leader=1)


def test_a_damaged_log_is_told_of_once_and_not_with_every_request(caplog: pytest.LogCaptureFixture) -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    for _ in range(100):
        node.broker.partitions.on_storage_problem(node.partition(), CorruptFile("rot"))
    assert len(caplog.records) == 1


def test_a_full_disk_is_told_of_once_and_not_with_every_attempt(caplog: pytest.LogCaptureFixture) -> None:
    node = lone_node()
    for _ in range(100):
        node.broker.partitions.on_disk_error("/data", OSError(errno.ENOSPC, "full"))
    assert len(caplog.records) == 1


# Directories that are gone for a while


def _without(node: TestNode, path: str, started: Callable[..., TestNode] = moving_node) -> TestNode:
    """The same node after a restart at which one of its directories cannot be used."""
    disk = node.disk.survivor_of_kill()  # type: ignore[attr-defined]
    disk.rename(path, "/away")
    disk.open(path, create=True).close()
    return started(disk, node.image)


def _with_it_again(node: TestNode, path: str) -> TestNode:
    disk = node.disk.survivor_of_kill()  # type: ignore[attr-defined]
    disk.remove(path)
    disk.rename("/away", path)
    return moving_node(disk, node.image)


@pytest.mark.parametrize("named", [LOST, MIGRATING, UNASSIGNED], ids=["lost", "migrating", "unassigned"])
def test_a_replica_of_the_isr_is_not_made_anew_while_the_directory_that_may_have_it_is_offline(named: Uuid) -> None:
    """All of the others were gone when the controller heard that it is lost: it is the last of the ISR still."""
    node = moving_node()
    in_one(node)
    assert node.produce(batch(b"kept")).error_code == ErrorCode.NONE
    node.change_partition(directories=[named])
    node = _without(node, "/one")
    node.timers.advance(60_000)
    assert (node.partition(), names_in(node, "/two")) == (None, [])
    assert node.produce(batch(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    node = _with_it_again(node, "/one")
    assert values_in(node.fetch()) == [b"kept"]
    node.timers.advance(1000)
    assert node.image.topics.by_name["orders"].partitions[0].directory(1) == IDS["/one"]


def test_another_leads_what_may_be_in_a_directory_that_is_offline() -> None:
    def started(disk: Any = None, image: Any = None) -> TestNode:
        node = TestNode(disk, image, log_dirs=tuple(IDS), directory_ids=IDS)
        node.broker.identity.broker_epoch = 7
        node.controller.replies = [AssignReplicasToDirsResponse()] * 20
        return node

    node = started()
    node.register_broker(2, "b", 9092)
    node.create_topic("orders", replicas=(1, 2), directories=(MIGRATING, HOME))
    assert node.partition().directory == "/one"
    node = _without(node, "/one", started)
    node.timers.advance(100)
    assert assigned(node) == [LOST]


def test_a_replica_that_no_directory_was_picked_for_is_made_while_another_is_offline() -> None:
    node = moving_node()
    in_one(node, "others")
    node.image.replay(TopicRecord(name="orders", topic_id=topic_id_of("orders")))
    node.image.replay(
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id_of("orders"),
            replicas=[1, 2],
            isr=[2],
            leader=2,
            leader_epoch=0,
            directories=[UNASSIGNED, UNASSIGNED],
        )
    )
    node = _without(node, "/one")
    assert (node.partition().directory, node.partition("others")) == ("/two", None)


def test_a_directory_that_is_not_configured_any_more_keeps_no_replica_from_being_made() -> None:
    node = moving_node()
    in_one(node)
    node.change_partition(directories=[Uuid(b"x" * 16)])
    disk = node.disk.survivor_of_kill()  # type: ignore[attr-defined]
    disk.rename("/one", "/away")
    node = moving_node(disk, node.image)
    assert node.partition() is not None


# Topics that are deleted meanwhile


def _kinds_in(node: TestNode, path: str = "/data") -> list[str]:
    """What is left of partitions: "0" for a directory that is in use, or its mark."""
    found = (name for name in node.disk.list_dir(path) if node.disk.is_dir(f"{path}/{name}"))
    return [name.rpartition("-")[2] for name in found]


def _restarted(node: TestNode, image: MetadataImage | None = None) -> TestNode:
    return TestNode(node.disk, image or node.image, directory_ids={"/data": HOME})


def test_a_broken_replica_goes_with_its_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    raise_once(monkeypatch, PartitionLog, "append_as_leader")
    partition = node.partition()
    partition.begin_job()
    node.produce(batch(b"x"))
    node.delete_topic("orders")
    assert _kinds_in(node) == ["0"], "a disk thread is at work on it"
    partition.end_job()
    assert _kinds_in(node) == ["delete"]
    node.timers.advance(60_000)
    assert _kinds_in(node) == []
    node.broker.partitions.logs.close(7)
    assert _restarted(node).broker.partitions.logs.epoch_of_clean_stop() == 7


def test_a_damaged_replica_goes_with_its_topic() -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    node.broker.partitions.logs.close(7)
    write_file(node.disk, "/data/orders-0/whatever.log.swap", b"")
    node = _restarted(node)
    assert node.broker.partitions.offline == {("orders", 0)}
    node.delete_topic("orders")
    node.timers.advance(60_000)
    assert _kinds_in(node) == []


def test_a_damaged_replica_whose_topic_is_gone_at_a_start_is_set_aside_and_the_next_stop_is_clean() -> None:
    node = lone_node()
    node.create_topic("orders", directories=(HOME,))
    node.broker.partitions.logs.close(7)
    write_file(node.disk, "/data/orders-0/whatever.log.swap", b"")
    node = _restarted(node, MetadataImage())
    assert _kinds_in(node) == ["stray"]
    node.broker.partitions.logs.close(8)
    assert _restarted(node).broker.partitions.logs.epoch_of_clean_stop() == 8


def test_a_replica_whose_topic_was_deleted_while_its_directory_was_away_is_set_aside_when_it_is_back() -> None:
    """As Apache Kafka's strays: nothing of what no topic has is deleted, and nothing of it is in use."""
    node = moving_node()
    in_one(node)
    node = _without(node, "/one")
    node.delete_topic("orders")
    assert node.broker.partitions.offline == set()
    node = _with_it_again(node, "/one")
    assert _kinds_in(node, "/one") == ["stray"]
