"""Every row of the failure table of docs/decisions/0012, without Spark: processes are killed at that point.

Each test ends the way Spark would: the batch is replayed by a new driver, as often as needed. Then every row is there
once for read-committed readers, and nothing is left open.
"""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.client.blocking.producer import Producer
from ottla.spark.sink import committer as committing
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.committer import Committer
from ottla.spark.sink.decision import Decision
from ottla.spark.sink.decision_log import create_topic
from ottla.spark.sink.names import SinkNames
from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultRefused
from tests.spark.sink_scene import SinkScene, Where, read

pytestmark = pytest.mark.ottla_topic(partitions=3)
VALUES = list(range(60))


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str) -> Iterator[SinkScene]:
    scene = SinkScene(ottla_broker, ottla_topic)
    yield scene
    assert scene.open_transactions() == []


def test_a_batch_is_there_when_the_driver_says_so_and_not_before(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2)
    assert scene.committed() == []
    scene.commit(0, results)
    assert scene.committed() == VALUES


def test_few_rows_are_written_by_the_driver_with_its_decision(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2, inline_bytes=1 << 20)
    assert all(result.transaction is None for result in results)
    scene.commit(0, results)
    assert scene.committed() == VALUES


def test_batches_follow_one_another_under_the_same_names(scene: SinkScene) -> None:
    committer = scene.committer()
    for batch_id in range(4):
        committer.commit(batch_id, "run-1", scene.tasks(batch_id, VALUES[batch_id::4], 2))
    committer.close()
    assert scene.committed() == VALUES


KILLED = {
    "before the driver has fenced others": Where(Producer, "init_transactions"),
    "before the decision is sent": Where(Committer, "_send"),
    "after the decision is sent, before it is committed": Where(Producer, "commit"),
    "after the decision is committed": Where(Producer, "commit", after=True),
    "before the transactions are committed": Where(ClusterAccess, "end_transactions"),
    "after all transactions are committed": Where(ClusterAccess, "end_transactions", after=True),
    "before leftovers are looked for": Where(Committer, "_abort_leftovers"),
    "before Spark has noted the commit": Where(Committer, "close"),
}


@pytest.mark.parametrize("where", KILLED.values(), ids=KILLED)
@pytest.mark.parametrize("task_count", [2, 3])
def test_the_driver_is_killed_and_the_batch_is_replayed(scene: SinkScene, where: Where, task_count: int) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), where)
    scene.commit(0, scene.tasks(0, VALUES, task_count))
    assert scene.committed() == VALUES


def test_the_driver_is_killed_between_two_commits(scene: SinkScene) -> None:
    first, second = scene.tasks(0, VALUES, 2)
    scene.commit_and_be_killed(0, [first, second], Where(ClusterAccess, "end_transactions"))
    assert second.transaction is not None
    with ClusterAccess(scene.settings) as access:
        assert list(access.end_transactions([second.transaction], commits=True).values()) == [None]
    assert scene.committed() != VALUES
    scene.commit(0, scene.tasks(0, VALUES, 5))
    assert scene.committed() == VALUES


def test_inline_rows_are_not_written_again_by_a_replay(scene: SinkScene) -> None:
    scene.commit_and_be_killed(
        0, scene.tasks(0, VALUES, 2, inline_bytes=1 << 20), KILLED["after the decision is committed"]
    )
    scene.commit(0, scene.tasks(0, VALUES, 3, inline_bytes=1 << 20))
    assert scene.committed() == VALUES


def test_a_replay_with_more_rows_for_the_driver_and_fewer_for_tasks_changes_nothing(scene: SinkScene) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), KILLED["after the decision is committed"])
    scene.commit(0, scene.tasks(0, VALUES, 3, inline_bytes=1 << 20))
    assert scene.committed() == VALUES


# --- tasks ---


def test_a_task_whose_executor_is_lost_is_tried_again(scene: SinkScene) -> None:
    lost = scene.task(0, 0, VALUES[::2])
    assert lost.transaction is not None
    scene.commit(0, [scene.task(0, 0, VALUES[::2], attempt=1), scene.task(0, 1, VALUES[1::2])])
    assert scene.committed() == VALUES


def test_the_slower_of_two_speculative_attempts_does_not_count(scene: SinkScene) -> None:
    quick, slow = scene.task(0, 0, VALUES, attempt=0), scene.task(0, 0, VALUES, attempt=1)
    assert quick.transaction is not None
    assert slow.transaction is not None
    scene.commit(0, [quick])
    assert scene.committed() == VALUES


def test_an_aborted_batch_leaves_nothing(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2)
    scene.task(0, 2, [1, 2, 3])  # and one whose result never arrived
    committer = scene.committer()
    committer.abort(0, results)
    committer.close()
    assert scene.open_transactions() == []
    assert scene.committed() == []
    scene.commit(0, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES


def test_aborting_a_decided_batch_does_not_undo_it(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2)
    scene.commit_and_be_killed(0, results, KILLED["before the transactions are committed"])
    committer = scene.committer()
    committer.abort(0, results)
    committer.close()
    scene.commit(0, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES


def test_a_task_of_a_decided_batch_that_comes_late_aborts_a_transaction_and_loses_no_row(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2)
    scene.commit_and_be_killed(0, results, KILLED["before the transactions are committed"])
    # As if it had looked for the decision just before there was one.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ottla.spark.sink.task_writer._is_decided", lambda *_: False)
        late = scene.tasks(0, VALUES, 2)
    assert [one.transaction.transactional_id for one in late if one.transaction] == [
        one.transaction.transactional_id for one in results if one.transaction
    ]
    scene.commit(0, late)
    assert scene.committed() == VALUES


# --- time ---


def test_a_transaction_that_timed_out_after_the_decision_is_written_anew(scene: SinkScene) -> None:
    scene.settings["transaction.timeout.ms"] = 1_000
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), KILLED["before the transactions are committed"])
    time_out(scene)
    scene.commit(0, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES


def test_a_transaction_that_timed_out_before_the_decision_is_written_anew(scene: SinkScene) -> None:
    scene.settings["transaction.timeout.ms"] = 1_000
    results = scene.tasks(0, VALUES, 2)
    time_out(scene)
    scene.commit(0, results)
    assert scene.committed() == VALUES


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_driver_is_killed_while_it_writes_anew(scene: SinkScene, after: bool) -> None:
    scene.settings["transaction.timeout.ms"] = 1_000
    results = scene.tasks(0, VALUES, 2)
    time_out(scene)
    scene.commit_and_be_killed(0, results, Where(Producer, "commit", nth=2, after=after))
    scene.commit(0, scene.tasks(0, VALUES, 4))
    assert scene.committed() == VALUES


def test_rows_that_retention_has_taken_are_an_error_that_names_them(scene: SinkScene) -> None:
    scene.settings["transaction.timeout.ms"] = 1_000
    results = scene.tasks(0, VALUES, 2)
    time_out(scene)
    with ClusterAccess(scene.settings) as access:
        for index in range(3):
            access.delete_records({(scene.topic, index): -1}).raise_first()
    with pytest.raises(committing.LostRows, match=rf"{scene.topic}-\d, offsets 0 to \d+"):
        scene.commit(0, results)
    scene.run += 1
    scene.commit(0, scene.tasks(0, VALUES, 2), fails_on_loss=False)
    scene.commit(1, scene.tasks(1, [100], 1))
    assert scene.committed() == [100]


# --- drivers ---


def test_an_older_driver_cannot_decide_after_a_newer_one(scene: SinkScene) -> None:
    older = scene.committer()
    results = scene.tasks(0, VALUES, 2)
    scene.run += 1
    scene.commit(0, scene.tasks(0, VALUES, 3))
    with pytest.raises(committing.NewerDriver, match=scene.query_id):
        older.commit(0, "run-1", results)
    older.close()
    assert scene.committed() == VALUES


def test_what_an_older_driver_decided_while_the_newer_ones_tasks_wrote_is_what_counts(scene: SinkScene) -> None:
    older, older_results = scene.committer(), scene.tasks(0, VALUES, 2)
    scene.run += 1
    newer_results = scene.tasks(0, VALUES, 3)  # these fence the older run's tasks 0 and 1
    older.commit(0, "run-1", older_results)
    older.close()
    scene.commit(0, newer_results)
    assert scene.committed() == VALUES


def test_a_decision_of_another_query_that_hangs_does_not_hide_this_ones(scene: SinkScene) -> None:
    partition = SinkNames().decisions_of(scene.query_id)
    with ClusterAccess(scene.settings) as access:
        create_topic(access, SinkNames(), scene.query_id)
    with Producer({**scene.settings, "transactional.id": f"hangs-{scene.query_id}"}) as other:
        other.begin()
        other.send(
            partition.topic, Decision(0, "", ()).encode(), b"another query", partition=partition.partition
        ).result()
        scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), KILLED["before the transactions are committed"])
        scene.commit(0, scene.tasks(0, VALUES, 3))
        other.abort()
    assert scene.committed() == VALUES


# --- brokers ---


def test_the_broker_is_killed_between_decision_and_commits(scene: SinkScene) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), KILLED["before the transactions are committed"])
    scene.broker.restart(clean=False)
    scene.commit(0, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES


def test_answers_of_the_coordinator_are_lost(scene: SinkScene) -> None:
    results = scene.tasks(0, VALUES, 2)
    committer = scene.committer()
    scene.broker.drop_connection("EndTxn", times=2)
    committer.commit(0, "run-1", results)
    committer.close()
    assert scene.committed() == VALUES


def time_out(scene: SinkScene) -> None:
    """Until the coordinator has aborted everything that is open. Apache Kafka's looks every ten seconds."""
    with suppress(FaultRefused):
        scene.broker.advance_time(60_000)
    deadline_s = time.monotonic() + 60
    while scene.open_transactions():
        assert time.monotonic() < deadline_s, "nothing times out"
    del scene.settings["transaction.timeout.ms"]  # what comes now may take its time
    assert read(scene.broker, scene.topic) == []
