"""`delivery` = single-transaction, without Spark: rows are staged by tasks, and sent on by the driver as they are."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla.admin import ConfigResource
from ottla.client.admin.transaction_states import TransactionState
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.client.blocking.producer import Producer
from ottla.client.errors import CorruptMessage
from ottla.records.header import Compression
from ottla.spark.sink import staging
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.committer import Committer
from ottla.spark.sink.copying import LostRows
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.single_transaction import SingleWriter
from ottla.testing import Broker
from tests.spark.sink_scene import SinkScene, Where, die, read, records

pytestmark = pytest.mark.ottla_topic(partitions=3)
VALUES = list(range(200))
STAGING = SinkNames().staging


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str) -> SinkScene:
    return SinkScene(ottla_broker, ottla_topic, is_staged=True)


@pytest.fixture
def own_scene(ottla_broker_factory: Callable[..., Broker]) -> SinkScene:
    """With a broker whose staging topic may be damaged."""
    broker = ottla_broker_factory()
    broker.create_topic("rows", partitions=3)
    return SinkScene(broker, "rows", is_staged=True)


def write(scene: SinkScene, results: list[Any]) -> None:
    """As `df.write` does it."""
    writer = SingleWriter(scene.settings)
    try:
        writer.write(scene.routing, results)
    finally:
        writer.close()


def wait_until_nothing_is_open(scene: SinkScene) -> None:
    under_way = [TransactionState.ONGOING, TransactionState.PREPARE_ABORT]
    deadline_s = monotonic() + 60
    with ClusterAccess(scene.settings) as access:
        while access.list_transactions(states=under_way, transactional_id_pattern="ottla-spark[.]write[.].*"):
            assert monotonic() < deadline_s, "nothing times out"


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_are_sent_on_undecoded(scene: SinkScene, monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    scene.settings["compression.type"] = codec
    results = scene.tasks(0, VALUES, 3)
    assert all(result.staged for result in results)
    assert read(scene.broker, scene.topic) == []
    monkeypatch.setattr(staging, "decode", None)
    write(scene, results)
    assert scene.committed() == VALUES
    with ClusterAccess(scene.settings) as access:
        fetched = access.fetch(ottla.TopicPartition(scene.topic, 0), 0)
    codecs = {header.compression for _, header in fetched.batches() if not header.is_control}
    assert codecs == {Compression[codec.upper()]}


KILLED = {
    "before the first batch is sent on": Where(ForwardingProducer, "forward"),
    "between two batches": Where(ForwardingProducer, "forward", nth=4),
    "before the end of the transaction": Where(Producer, "commit"),
}


@pytest.mark.parametrize("where", KILLED.values(), ids=KILLED)
def test_nothing_of_a_batch_write_is_there_when_its_driver_is_killed(scene: SinkScene, where: Where) -> None:
    results = scene.tasks(0, VALUES, 2)
    scene.settings["transaction.timeout.ms"] = 1_000

    def drive() -> None:
        with where.armed():
            write(scene, results)

    die(drive)
    scene.broker.advance_time(60_000)  # nobody comes back: the coordinator ends it
    wait_until_nothing_is_open(scene)
    del scene.settings["transaction.timeout.ms"]
    write(scene, scene.tasks(1, [1000], 1))
    assert scene.committed() == [1000]


@pytest.mark.parametrize(
    "where",
    [
        *KILLED.values(),
        Where(Committer, "_send"),
        Where(Producer, "commit", after=True),
        Where(Committer, "close"),
    ],
    ids=[*KILLED, "before the decision is sent", "after the decision is committed", "before Spark has noted it"],
)
def test_the_driver_of_a_query_is_killed_and_the_batch_is_replayed(scene: SinkScene, where: Where) -> None:
    scene.commit_and_be_killed(0, scene.tasks(0, VALUES, 2), where)
    scene.commit(0, scene.tasks(0, VALUES, 3))
    assert scene.committed() == VALUES


def test_rows_of_a_task_that_was_tried_again_are_not_sent_on(scene: SinkScene) -> None:
    scene.task(0, 0, VALUES)  # its result never arrives
    write(scene, scene.tasks(0, VALUES, 2))
    assert scene.committed() == VALUES


def test_a_staging_topic_with_other_settings_serves_as_well(own_scene: SinkScene) -> None:
    with ClusterAccess(own_scene.settings) as access:
        staging.create_topic(access, STAGING)
        resource = ConfigResource.topic(STAGING)
        access.incremental_alter_configs({resource: {"message.timestamp.type": "LogAppendTime"}}).raise_first()
    write(own_scene, own_scene.tasks(0, VALUES, 2))
    assert own_scene.committed() == VALUES
    for record in records(own_scene.broker, own_scene.topic):
        assert record.key == record.value


def test_staged_rows_that_are_gone_are_an_error_that_names_them(own_scene: SinkScene) -> None:
    results = own_scene.tasks(0, VALUES, 1)
    with ClusterAccess(own_scene.settings) as access:
        access.delete_records({(STAGING, 0): -1}).raise_first()
    with pytest.raises(LostRows, match=f"staged rows of {STAGING}-0, offsets 0 to"):
        write(own_scene, results)
    assert own_scene.committed() == []


def test_damaged_rows_are_not_given_a_checksum_that_hides_it(scene: SinkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    results = scene.tasks(0, VALUES, 1)
    real = ClusterAccess.begin_fetch

    def damaged(*args: Any, **keywords: Any) -> Any:
        fetched = real(*args, **keywords)()
        fetched.records[-1] ^= 1
        return lambda: fetched

    monkeypatch.setattr(ClusterAccess, "begin_fetch", damaged)
    with pytest.raises(CorruptMessage, match="do not match their checksum"):
        write(scene, results)
    monkeypatch.undo()
    assert scene.committed() == []


def test_many_fetches_and_pieces_of_other_queries_in_between(scene: SinkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fetch has about two batches, and every second batch is another query's."""
    rows = pa.record_batch({"key": pa.array([b"%d" % n for n in VALUES]), "value": pa.array([b"1000"] * 200)})
    results = []
    for number in range(0, 200, 20):
        results.append(scene.task(0, 0, VALUES[number : number + 20]))
        with ottla.Producer(scene.settings) as other:
            other.send_arrow(STAGING, rows, partition=0)
    real = ClusterAccess.begin_fetch
    monkeypatch.setattr(
        ClusterAccess, "begin_fetch", lambda access, *where, **_: real(access, *where, max_bytes=10_000)
    )
    write(scene, results)
    assert scene.committed() == VALUES
