"""Rows of a replay are passed over only if they are the rows that were decided. Else it is an error that says so."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.blocking.producer import Producer
from ottla.client.errors import TopicAuthorizationFailed, UnsupportedVersion
from ottla.records.arrow import encode
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.spark.options import OptionError, Options, Use
from ottla.spark.sink import cluster_access, task_writer
from ottla.spark.sink.cluster_access import ClusterAccess, FetchedBatches
from ottla.spark.sink.committer import CheckpointWentBack, Committer, OtherRows, WrittenTwice
from ottla.spark.sink.decided_writes import start_of_query
from ottla.spark.sink.decision import Decision, TaskTransaction
from ottla.spark.sink.decision_log import WrongDecision, _Reading, create_topic
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.sink_options import Delivery, read_sink_options
from ottla.testing import Broker
from tests.spark.sink_scene import SinkScene, Where, rows

pytestmark = pytest.mark.ottla_topic(partitions=2)
VALUES = list(range(40))
NAMES = SinkNames()


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str) -> SinkScene:
    return SinkScene(ottla_broker, ottla_topic)


# --- what may not be passed over ---


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_a_batch_before_the_last_that_was_decided_is_an_error(scene: SinkScene, inline_bytes: int) -> None:
    scene.commit(5, scene.tasks(5, VALUES, 2))
    scene.run += 1
    for batch_id in (3, 4):
        with pytest.raises(CheckpointWentBack, match=f"has batch {batch_id}, and batch 5 was decided before") as told:
            scene.commit(batch_id, scene.tasks(batch_id, [100], 1, inline_bytes=inline_bytes))
        assert "checkpointLocation" in str(told.value)
    assert scene.committed() == VALUES
    assert scene.open_transactions() == []


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_a_batch_of_another_size_than_the_one_that_was_decided_is_an_error(scene: SinkScene, inline_bytes: int) -> None:
    scene.commit(0, scene.tasks(0, VALUES, 2))
    scene.run += 1
    with pytest.raises(CheckpointWentBack, match="batch 0 with 41 rows, and it was decided before with 40"):
        scene.commit(0, scene.tasks(0, [*VALUES, 100], 3, inline_bytes=inline_bytes))
    scene.commit(0, scene.tasks(0, [*VALUES, 100], 3, inline_bytes=inline_bytes), fails_on_loss=False)
    scene.commit(1, scene.tasks(1, [200], 1))
    assert scene.committed() == [*VALUES, 200]


OTHERS = [*range(1000, 1039), 39]
"""As many as `VALUES`, and one of them the same."""


@pytest.mark.parametrize("is_staged", [False, True])
@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_a_batch_of_as_many_other_rows_than_were_decided_is_an_error(
    ottla_broker: Broker, ottla_topic: str, inline_bytes: int, is_staged: bool
) -> None:
    """As when a checkpoint goes back by one batch, and the source has as many newer rows for it."""
    scene = SinkScene(ottla_broker, ottla_topic, is_staged=is_staged)
    scene.commit(0, scene.tasks(0, VALUES, 2))
    scene.run += 1
    with pytest.raises(OtherRows, match="batch 0 with 40 rows, and it was decided before with as many") as told:
        scene.commit(0, scene.tasks(0, OTHERS, 2, inline_bytes=inline_bytes))
    assert "checkpointLocation" in str(told.value)
    assert "replayCheck" in str(told.value)
    assert scene.committed() == VALUES
    assert scene.open_transactions() == []


@pytest.mark.parametrize("lenient", [{"checks_rows": False}, {"fails_on_loss": False}])
def test_a_query_whose_rows_differ_each_time_can_be_replayed(scene: SinkScene, lenient: dict[str, bool]) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), Where(Producer, "commit", after=True))
    scene.commit(0, scene.tasks(0, OTHERS, 3), **lenient)
    scene.commit(1, scene.tasks(1, [100], 1), **lenient)
    assert scene.committed() == [*VALUES, 100]


def test_a_replay_has_its_rows_in_any_order_and_in_any_tasks(scene: SinkScene) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), Where(Producer, "commit", after=True))
    scene.commit(0, scene.tasks(0, VALUES[::-1], 5, inline_bytes=1 << 20))
    assert scene.committed() == VALUES


@pytest.mark.parametrize("known", ["nothing", "count"])
def test_a_decision_of_an_older_version_is_understood(
    scene: SinkScene, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    encode = Decision.encode
    as_before = {"rows_digest": None, "row_count": 40 if known == "count" else None}
    with monkeypatch.context() as old:
        old.setattr(Decision, "encode", lambda decision: encode(decision._replace(**as_before)))
        scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), Where(Producer, "commit", after=True))
    scene.commit(0, scene.tasks(0, VALUES, 3))
    scene.commit(1, scene.tasks(1, [100], 1))
    assert scene.committed() == [*VALUES, 100]


def test_a_second_write_of_a_batch_is_an_error_in_every_start(scene: SinkScene) -> None:
    """The replay's first write finds the batch done. Its second, in whichever process, has other rows."""
    for run in range(1, 4):
        scene.run = run
        scene.commit(0, scene.tasks(0, VALUES, 2))
        second = scene.task(0, 0, VALUES)
        with pytest.raises(WrittenTwice, match="writeName"):
            scene.commit(0, [second])
        assert scene.open_transactions() == []
    assert scene.committed() == VALUES


def test_a_replay_of_a_replay_finds_the_batch_done(scene: SinkScene) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), Where(Producer, "commit", after=True))
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 3), Where(Committer, "_note_replay"))
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 3), Where(Committer, "_note_replay", after=True))
    scene.commit(0, scene.tasks(0, VALUES, 1))
    scene.commit(1, scene.tasks(1, [100], 1))
    assert scene.committed() == [*VALUES, 100]


TAGS = "spark-session-{0}-execution-root-id-7,mine,spark-session-{0}"


def test_a_start_is_known_by_its_session_whatever_the_job_group_is() -> None:
    assert start_of_query(TAGS.format("a67102f8-8f5f"), "nightly") == "a67102f8-8f5f"
    assert start_of_query(TAGS.format("415b7743-391a"), "nightly") == "415b7743-391a"
    assert start_of_query("mine", "nightly") == "nightly"
    assert start_of_query(None, None) == ""


# --- decisions that are not the query's own ---


def forge(scene: SinkScene, value: bytes) -> None:
    topic, partition = NAMES.decisions_of(scene.query_id)
    with ClusterAccess(scene.settings) as access:
        create_topic(access, NAMES, scene.query_id)
    with Producer({**scene.settings, "transactional.id": f"forger-{scene.query_id}"}) as forger:
        forger.begin()
        forger.send(topic, value, scene.query_id.encode(), partition=partition)
        forger.commit()


FOREIGN = TaskTransaction("payments-7", 4, 2, True, ())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Decision(1 << 60, "", (), 1).encode(), "was decided before"),
        (Decision(0, "", (), 1).encode(), "with 40 rows, and it was decided before with 1"),
        (Decision(0, "", (), 40, 1 << 63).encode(), "with 40 rows, and it was decided before with as many"),
        (Decision(0, "", (), 40).encode(), "by another producer than the query's drivers"),
        (Decision(0, "", ()).encode(), "by another producer than the query's drivers"),
        (Decision(0, "", (FOREIGN,), 40).encode(), "it names the transaction payments-7"),
        (b"nonsense", "it cannot be read"),
        (Decision(0, "", (), 1).encode()[:-6], "it cannot be read"),
    ],
    ids=[
        "a later batch",
        "another size",
        "as many rows",
        "no rows said",
        "nothing said",
        "another's transaction",
        "nonsense",
        "cut off",
    ],
)
def test_a_forged_decision_is_an_error_and_discards_no_row(scene: SinkScene, value: bytes, told: str) -> None:
    forge(scene, value)
    with pytest.raises((CheckpointWentBack, WrongDecision), match=told):
        scene.commit(0, scene.tasks(0, VALUES, 2, inline_bytes=1 << 20))
    assert scene.committed() == []


def test_a_record_outside_transactions_is_no_decision_also_under_the_drivers_producer_id() -> None:
    """Its next marker is the driver's, and counts for what the driver has written."""
    decided, forged = Decision(0, "", (), 1).encode(), Decision(9, "", (), 1).encode()
    log = b""
    for offset, (value, is_in_one) in enumerate([(decided, True), (forged, False)]):
        rows = pa.record_batch({"key": [b"q"], "value": [value]})
        log += b"".join(
            encode(rows, timestamp_ms=0, producer_id=7, producer_epoch=0, base_sequence=offset, transactional=is_in_one)
        )
    log += build_end_transaction_marker(EndTransactionMarker(committed=True, coordinator_epoch=0), 7, 0, 0)
    reading = _Reading(b"q")
    reading.take(FetchedBatches(0, 3, 3, frozenset(), memoryview(bytearray(log))))
    assert reading.last == (7, decided)


# --- names ---


def test_the_names_of_topics_and_transactions_are_options(ottla_broker: Broker, ottla_topic: str) -> None:
    given = {"kafka.bootstrap.servers": "x:1", "topic": ottla_topic}
    assert read_sink_options(Options(given, Use.STREAM_WRITE), Delivery.EXACTLY_ONCE).names == NAMES
    given |= {"decisionsTopic": "etl.{query}.decisions", "stagingTopic": "etl-staging", "transactionalIdPrefix": "etl"}
    names = read_sink_options(Options(given, Use.STREAM_WRITE), Delivery.EXACTLY_ONCE).names
    assert names.decisions_of("7f3-a.orders") == ("etl.7f3-a.decisions", 0)
    assert names.staging_of("7f3-a.orders") == "etl-staging"
    assert names.driver_id("7f3-a.orders") == "etl.7f3-a.orders.driver"
    assert names.task_prefix("7f3-a.orders") == "etl.7f3-a.orders.task."


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"decisionsTopic": "a b"}, "option decisionsTopic is 'a b'"),
        ({"stagingTopic": ""}, "option stagingTopic is ''"),
        ({"transactionalIdPrefix": "{query}"}, "option transactionalIdPrefix is '{query}'"),
        ({"decisionsTopic": "one", "stagingTopic": "one"}, "are both 'one'"),
    ],
)
def test_names_that_cannot_be_are_refused(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        read_sink_options(Options({"kafka.bootstrap.servers": "x:1", **wrong}, Use.WRITE), Delivery.EXACTLY_ONCE)


@pytest.mark.parametrize("decisions", ["own-decisions-{query}", "shared-decisions"])
def test_a_query_with_names_of_its_own_leaves_nothing_under_others(scene: SinkScene, decisions: str) -> None:
    names = SinkNames(decisions, "own-staging", f"own-{scene.query_id}")
    scene.names = names
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), Where(ClusterAccess, "end_transactions"))
    scene.commit(0, scene.tasks(0, VALUES, 3))
    assert scene.committed() == VALUES
    with ClusterAccess(scene.settings) as access:
        assert names.decisions_of(scene.query_id).topic in {one.name for one in access.list_topics()}
        ids = {one.transactional_id for one in access.list_transactions()}
    assert not [one for one in ids if one.startswith(f"ottla-spark.{scene.query_id}")]
    assert names.driver_id(scene.query_id) in ids


# --- what brokers allow, and what old ones know ---


def refuse(error: Exception) -> Any:
    def refused(*_: object, **__: object) -> None:
        raise error

    return refused


@pytest.mark.parametrize("is_staged", [False, True])
def test_create_is_not_needed_for_topics_that_exist(
    ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch, is_staged: bool
) -> None:
    scene = SinkScene(ottla_broker, ottla_topic, is_staged=is_staged)
    scene.commit(0, scene.tasks(0, VALUES, 2))
    monkeypatch.setattr(ClusterAccess, "create_topics", refuse(TopicAuthorizationFailed("no Create")))
    scene.run += 1
    scene.commit(1, scene.tasks(1, [100], 1))
    assert scene.committed() == [*VALUES, 100]


def test_leftovers_are_found_on_brokers_that_cannot_look_for_a_pattern(
    scene: SinkScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = ClusterAccess.list_transactions

    def as_before_4_1(access: ClusterAccess, *, transactional_id_pattern: str | None = None, **given: Any) -> Any:
        if transactional_id_pattern is not None:
            raise UnsupportedVersion("ListTransactions v2")
        return listing(access, **given)

    lost, kept = scene.task(0, 0, VALUES[::2]), scene.tasks(0, VALUES, 2, attempt=1)
    assert lost.transaction is not None
    with monkeypatch.context() as old:
        old.setattr(ClusterAccess, "list_transactions", as_before_4_1)
        scene.commit(0, kept)
    assert scene.open_transactions() == []
    assert scene.committed() == VALUES


# --- rows that are written anew ---


def test_rows_are_written_anew_some_at_a_time_and_what_is_written_stays_so(
    scene: SinkScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetches of one batch each; every one is a transaction, and a driver that is killed begins after the last."""
    fetching = ClusterAccess.fetch
    monkeypatch.setattr(
        ClusterAccess,
        "fetch",
        lambda access, at, offset, **given: fetching(access, at, offset, **given | {"max_bytes": 1}),
    )
    scene.settings["batch.size"] = 100
    results = scene.tasks(0, VALUES, 2)
    assert all(piece.row_count > 5 for one in results if one.transaction for piece in one.transaction.pieces)
    with ClusterAccess(scene.settings) as access:
        access.end_transactions([one.transaction for one in results if one.transaction], commits=False)
    scene.commit_and_be_killed(0, results, Where(Producer, "commit", nth=4, after=True))
    assert 0 < len(scene.committed()) < len(VALUES)
    rewritten: list[int] = []
    sending = Committer._decide_further

    def counted(committer: Committer, decision: Decision, piece: Any = None, rows: Any = None) -> None:
        rewritten.append(0 if rows is None else rows.num_rows)
        sending(committer, decision, piece, rows)

    monkeypatch.setattr(Committer, "_decide_further", counted)
    left = len(VALUES) - len(scene.committed())
    scene.commit(0, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES
    assert sum(rewritten) == left


# --- what tasks and drivers say of clusters ---


def test_a_task_that_writes_for_longer_than_its_transaction_may_last_says_so(
    ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SinkScene(ottla_broker, ottla_topic)
    scene.settings["transaction.timeout.ms"] = 1_000
    clock_s = 0.0
    monkeypatch.setattr(task_writer, "monotonic", lambda: clock_s)

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal clock_s
        yield from rows(range(300_000))  # enough to be sent at once
        while not scene.open_transactions():
            pass  # what is written above is on its way
        ottla_broker.advance_time(60_000)
        while scene.open_transactions():
            pass
        clock_s += 60
        yield from rows(range(100))

    task = task_writer.Task(scene.query_id, "run-1", 0, 3, 0)
    with pytest.raises(task_writer.TaskTookTooLong, match=r"task 3 wrote for 60 s, and .* is 1 s[.] .*repartition"):
        task_writer.write_task(task, scene.settings, scene.routing, batches(), inline_bytes=0)


def test_brokers_that_do_not_answer_are_named_where_a_write_is_planned() -> None:
    with pytest.raises(cluster_access.Unreachable, match=r"kafka\.bootstrap\.servers \(127\.0\.0\.1:1\)"):
        cluster_access.check_reachable({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "300"})
    assert int(cluster_access._PATIENCE_MS) < 60_000


def test_a_cluster_is_asked_once_by_a_process(ottla_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_access, "_reached", set())
    cluster_access.check_reachable({"bootstrap.servers": ottla_broker.bootstrap})
    monkeypatch.setattr(ClusterAccess, "describe_cluster", refuse(AssertionError("asked again")))
    cluster_access.check_reachable({"bootstrap.servers": ottla_broker.bootstrap})
