"""The driver: what is decided, when it is committed, and who hears of it in which order."""

import errno

import pytest

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid
from ottla.log.flush import Flush
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.raft.voters import DYNAMIC_VOTERS, ReplicaKey, Voter, VoterSet
from ottla.runtime.attribution import work_for
from ottla.runtime.metadata.storage.metadata_batches import MAX_BATCH_BYTES, metadata_batches
from ottla.runtime.metadata.storage.snapshots import BOOTSTRAP_ID, snapshot_batches, write_batches
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    RegisterBrokerRecord,
    TopicRecord,
    VotersRecord,
)
from tests.unit.runtime.metadata.metadata_logs import LOG_DIR, ME, Node, topic_records


def written(node: Node) -> list[list[str]]:
    """The names of the records of every batch in the log."""
    batches = node.store.read(node.store.log.log_start_offset, node.log.log_end_offset)
    return [[type(record).__name__ for record in [*batch.control, *batch.records]] for batch in batches]


def test_an_empty_log_begins_with_the_leader_and_the_records_of_formatting() -> None:
    node = Node()
    assert node.events == ["ready"]
    assert written(node) == [
        ["LeaderChangeMessage"],
        [
            "BeginTransactionRecord",
            "FeatureLevelRecord",
            "FeatureLevelRecord",
            "ConfigRecord",
            "EndTransactionRecord",
        ],
    ]
    assert node.log.image.features.metadata_version == 30
    assert node.log.image.configs.of_cluster() == {"min.insync.replicas": "1"}


def test_a_later_start_writes_only_who_leads() -> None:
    node = Node().restarted()
    assert node.events == ["ready"]
    assert written(node)[2:] == [["LeaderChangeMessage"]]
    assert node.log.raft.epoch == 2


def test_a_reply_comes_after_the_image_and_the_listeners_have_it() -> None:
    node = Node()
    node.listen()
    node.workers.hold()
    node.create("orders")
    assert node.events == ["ready"]
    assert node.topics == []
    node.workers.step()
    assert node.events == ["ready", ("delta", ["orders"]), "orders"]
    assert node.topics == ["orders"]


def test_the_controller_knows_what_it_decided_before_it_is_committed() -> None:
    node = Node()
    node.workers.hold()
    node.create("orders")
    node.ask()
    assert node.events == ["ready"]  # the answer rests on a topic that a crash could still take back
    node.workers.step()
    assert node.events == ["ready", "orders", ("orders",)]


def test_a_decision_without_records_is_answered_at_once_when_all_is_committed() -> None:
    node = Node()
    node.workers.hold()
    node.ask()
    assert node.events == ["ready", ()]


def test_decisions_that_come_during_a_flush_share_the_next_one() -> None:
    node = Node()
    node.workers.hold()
    done = node.workers.done
    for number in range(100):
        node.create(f"topic-{number:03}")
    node.workers.step()
    assert node.events == ["ready", "topic-000"]
    node.workers.step()
    assert node.events == ["ready", *(f"topic-{number:03}" for number in range(100))]
    assert node.workers.done - done == 2


def test_the_controller_is_told_the_offset_of_its_next_record() -> None:
    """A broker's epoch is the offset of its registration."""
    node = Node()
    asked: list[int] = []
    node.log.submit(lambda controller, _: Decision(controller.next_offset), asked.append, node.refused)
    node.create("orders")
    node.log.submit(lambda controller, _: Decision(controller.next_offset), asked.append, node.refused)
    assert asked == [6, 8]


def test_nothing_is_decided_before_the_log_is_loaded() -> None:
    node = Node(started=False)
    node.create("orders")
    assert node.events == [ErrorCode.NOT_CONTROLLER]


def test_a_restart_finds_what_was_committed() -> None:
    node = Node()
    node.create("orders", "payments")
    again = node.restarted()
    assert again.topics == ["orders", "payments"]
    again.create("returns")
    assert again.restarted().topics == ["orders", "payments", "returns"]


def test_a_listener_hears_of_everything_at_start_in_one_delta() -> None:
    node = Node()
    node.create("orders")
    node.create("payments")
    node.stop()
    again = Node(node.disk, started=False)
    again.listen()
    again.log.start(lambda: again.events.append("ready"))
    assert again.events == [("delta", ["orders", "payments"]), "ready"]


@pytest.mark.slow
def test_a_decision_too_large_for_a_batch_becomes_a_transaction() -> None:
    """KIP-868."""
    node = Node()
    node.listen()
    names = [f"topic-{number:02}" for number in range(12)]
    node.create(*names, padding=50_000)
    batches = written(node)[2:]
    assert len(batches) > 1
    assert (batches[0][0], batches[-1][-1]) == ("BeginTransactionRecord", "EndTransactionRecord")
    assert node.events == ["ready", ("delta", names), "topic-00"]
    assert node.restarted().topics == names


def test_a_transaction_that_a_controller_left_open_is_aborted_by_the_next() -> None:
    node = Node()
    begun = [VersionedRecord(BeginTransactionRecord(name="half done"), 0), *topic_records("lost")]
    node.log.submit(lambda *_: Decision(None, begun), node.events.append, node.refused)
    assert node.topics == []
    again = node.restarted()
    assert written(again)[-1] == ["AbortTransactionRecord"]
    assert again.topics == []
    again.create("orders")
    assert again.topics == ["orders"]


def test_stopping_waits_for_the_disk_and_refuses_what_is_not_committed() -> None:
    node = Node()
    node.workers.hold()
    node.create("orders")
    node.stop()
    assert node.events == ["ready", ErrorCode.NOT_CONTROLLER]
    node.workers.step()  # the flush
    node.workers.step()  # the closing
    assert node.events[-1] == "stopped"
    node.create("payments")
    assert node.events[-1] is ErrorCode.NOT_CONTROLLER
    assert Node(node.disk).topics == ["orders"]


@pytest.mark.parametrize("step", range(1, 6))
def test_a_disk_that_fails_ends_the_log_with_one_clear_line(step: int) -> None:
    disk = MemoryDisk()
    node = Node(disk)
    node.create("orders")
    disk.fail_from(disk.calls + step, errno.EIO)
    for name in ("payments", "returns", "refunds"):
        node.create(name)
    assert str(node.problems[0]).startswith(f"the metadata log in {LOG_DIR}/__cluster_metadata-0 failed: ")
    assert node.events[-1] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_CONTROLLER)
    node.ask()
    assert node.events[-1] is ErrorCode.NOT_CONTROLLER
    assert len(node.problems) == 1
    node.stop()
    assert node.events[-1] == "stopped"
    disk.repair()
    assert Node(disk).topics[0] == "orders"


def test_a_flush_that_fails_refuses_everything_that_waited_for_it() -> None:
    disk = MemoryDisk()
    node = Node(disk)
    node.workers.hold()
    node.create("orders")
    node.create("payments")
    disk.fail_from(disk.calls + 1, errno.EIO)
    node.workers.step()
    assert node.events == ["ready", ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR]


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOMEM, errno.ENOSPC])
def test_a_flush_that_cannot_be_begun_for_a_moment_is_begun_later(
    error: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    begin, left = node.store.start_flush, [1, 2]

    def start_flush() -> Flush:
        if left:
            left.pop()
            raise OSError(error, "not now")
        return begin()

    monkeypatch.setattr(node.store, "start_flush", start_flush)
    node.create("orders")
    node.create("payments")
    assert (node.events, len(left)) == (["ready"], 1)
    assert "the metadata log cannot be flushed, trying again in 1 s" in caplog.text
    node.timers.advance(1_000)
    assert (node.events, len(left)) == (["ready"], 0)
    node.timers.advance(1_000)
    assert node.events == ["ready", "orders", "payments"]
    assert node.problems == []


def test_a_flush_that_cannot_be_begun_for_another_reason_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()

    def start_flush() -> Flush:
        raise OSError(errno.EIO, "never")

    monkeypatch.setattr(node.store, "start_flush", start_flush)
    node.create("orders")
    assert node.events == ["ready", ErrorCode.KAFKA_STORAGE_ERROR]
    assert len(node.problems) == 1


def test_a_quorum_state_that_cannot_be_written_is_no_leadership() -> None:
    disk = MemoryDisk()
    node = Node(disk, started=False)
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    node.log.start(lambda: node.events.append("ready"))
    assert node.events == []
    assert len(node.problems) == 1
    assert node.log.log_end_offset == 0


def test_a_disk_that_fails_anywhere_in_a_start_leaves_a_node_that_is_not_ready_and_the_next_start_is() -> None:
    for step in range(1, 1000):
        disk = MemoryDisk()
        node = Node(disk, started=False)
        disk.fail_from(disk.calls + step, errno.EIO)
        node.log.start(lambda events=node.events: events.append("ready"))  # type: ignore[misc]
        assert (len(node.problems), node.events, node.log.is_active) in ((1, [], False), (0, ["ready"], True))
        if not node.problems:
            break
        node.stop()
        disk.repair()
        again = Node(disk)
        assert (again.problems, again.events) == ([], ["ready"])
    assert step > 5


@pytest.mark.parametrize("breaks", ["deciding", "replaying"])
def test_a_controller_that_cannot_take_up_its_own_first_batch_ends_the_log_instead_of_leading(
    breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def activate(_controller: Controller, _bootstrap: object) -> Decision[None]:
        assert breaks == "replaying", "an invariant"
        return Decision(None, [VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=99), 0)])

    monkeypatch.setattr(Controller, "activate", activate)
    node = Node()
    assert len(node.problems) == 1
    assert node.events == []
    assert not node.log.is_active


def formatted_for_dynamic_voters() -> MemoryDisk:
    disk = MemoryDisk()
    directory = f"{LOG_DIR}/__cluster_metadata-0"
    disk.make_dirs(directory)
    batches = snapshot_batches([], 0, kraft_version=DYNAMIC_VOTERS, voters=VoterSet([ME]))
    write_batches(disk, f"{directory}/{BOOTSTRAP_ID.name}", batches)
    return disk


def test_the_first_leader_of_a_dynamic_quorum_writes_the_voters_into_the_log() -> None:
    """KIP-853."""
    node = Node(formatted_for_dynamic_voters(), static_voters=None)
    assert written(node)[0] == ["LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"]
    (batch, *_) = node.store.read(0, 3)
    assert batch.control == [
        LeaderChangeMessage(
            leader_id=1,
            voters=[LeaderChangeMessage.Voter(voter_id=1)],
            granting_voters=[LeaderChangeMessage.Voter(voter_id=1)],
        ),
        KRaftVersionRecord(k_raft_version=1),
        VotersRecord(voters=VoterSet([ME]).to_record().voters),
    ]
    again = node.restarted(static_voters=None)
    assert written(again)[2:] == [["LeaderChangeMessage"]]


def test_a_directory_without_voters_says_how_to_get_some() -> None:
    with pytest.raises(StorageError, match=r"controller\.quorum\.voters.*--standalone"):
        Node(static_voters=None)


@pytest.mark.parametrize(
    ("disk", "me"),
    [(MemoryDisk(), ME), (formatted_for_dynamic_voters(), Voter(ReplicaKey(1)))],
    ids=["no voters", "another directory"],
)
def test_a_node_that_is_no_voter_and_can_follow_nobody_is_refused(disk: MemoryDisk, me: Voter) -> None:
    with pytest.raises(StorageError, match=r"no voters|none of them is this node"):
        Node(disk, static_voters=None, me=me)


def test_a_record_that_does_not_follow_never_gets_into_the_log() -> None:
    node = Node()
    end_offset = node.log.log_end_offset
    newer = [VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=99), 0)]
    with pytest.raises(StorageError, match="99"):
        node.log.submit(lambda *_: Decision(None, newer), node.events.append, node.refused)
    assert node.log.log_end_offset == end_offset


def test_records_that_do_not_follow_stop_the_start() -> None:
    node = Node()
    node.create("orders")
    offset = node.log.log_end_offset
    node.store.append(bytearray(_batch_of_a_repeated_topic(node)), 1)
    node.store.log.flush()
    node.store.release()
    again = Node(node.disk)
    (problem,) = again.problems
    assert f"the record at offset {offset} (TopicRecord) cannot be applied" in str(problem)
    assert again.events == []


def _batch_of_a_repeated_topic(node: Node) -> bytes:
    record = VersionedRecord(TopicRecord(name="orders", topic_id=topic_records("orders")[0].message.topic_id), 0)
    (batch,) = metadata_batches([record], node.clock.now_ms())
    return bytes(batch)


def test_a_decision_that_cannot_be_replayed_costs_its_request_and_leaves_no_trace() -> None:
    node = Node()
    node.workers.hold()
    node.create("orders")
    half = [
        *topic_records("payments"),
        VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=99), 0),
    ]
    with pytest.raises(StorageError, match="99"):
        node.log.submit(lambda *_: Decision(None, half), node.events.append, node.refused)
    node.ask()
    node.workers.step()
    assert node.events == ["ready", "orders", ("orders",)], "the controller knows what was decided before, and no half"
    assert not node.problems


def test_a_reply_that_breaks_fails_its_own_request_and_the_others_are_given_out() -> None:
    node = Node()
    node.workers.hold()
    problems: list[Exception] = []

    class Request:
        def fail(self, problem: Exception) -> None:
            problems.append(problem)

    def breaks(_: object) -> None:
        raise AssertionError("an invariant")

    records = topic_records("orders")
    work_for(Request(), lambda: node.log.submit(lambda *_: Decision(None, records), breaks, node.refused))
    node.create("payments")
    node.workers.step()
    node.workers.step()
    assert [str(problem) for problem in problems] == ["an invariant"]
    assert node.events == ["ready", "payments"]
    assert not node.problems


def test_a_listener_that_raises_over_what_is_committed_is_told_with_its_records_and_the_others_hear_of_it() -> None:
    """The same records would end every node of the cluster."""
    node = Node()

    def breaks(_: MetadataDelta) -> None:
        raise AssertionError("an invariant of the broker")

    node.log.listen(breaks)
    node.listen()
    first = node.log.log_end_offset
    node.create("orders")
    assert node.events == ["ready", ("delta", ["orders"]), "orders"]
    assert not node.problems
    with pytest.raises(AssertionError, match="an invariant of the broker") as raised:
        node.timers.advance(1)
    assert raised.value.__notes__ == [
        f"while handling offsets {first} to {first + 1} of the metadata log: TopicRecord, PartitionRecord"
    ]


@pytest.mark.slow
def test_a_record_that_is_too_large_for_a_batch_is_refused_and_the_log_goes_on() -> None:
    node = Node(store_config=StoreConfig(segment_bytes=MAX_BATCH_BYTES))
    directories = [Uuid(number.to_bytes(16, "big")) for number in range(1000, 601_000)]
    record = VersionedRecord(RegisterBrokerRecord(broker_id=7, log_dirs=directories), 3)
    node.log.submit(lambda *_: Decision(None, [record]), node.events.append, node.refused)
    node.create("orders")
    assert node.events == ["ready", ErrorCode.RECORD_LIST_TOO_LARGE, "orders"]
    assert 7 not in node.log.image.brokers.by_id


def test_a_controller_that_takes_over_from_one_that_could_not_go_on_knows_when_brokers_were_heard_of() -> None:
    """Or the next to stop would not wait for the others to know, and one that is dead would have its time anew."""
    node = Node()
    assert node.log.controller is not None
    node.log.controller.context.sessions.touch(7, 42, 1000, metadata_offset=5)
    wrong = [VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=99), 0)]
    before = node.log.controller
    with pytest.raises(StorageError, match="99"):
        node.log.submit(lambda *_: Decision(None, wrong), node.events.append, node.refused)
    assert node.log.controller is not before
    session = node.log.controller.context.sessions.by_broker[7]
    assert (session.epoch, session.heard_at_ms, session.metadata_offset) == (42, 1000, 5)
