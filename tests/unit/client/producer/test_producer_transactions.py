"""Transactions in both protocols, by transcript."""

from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.errors import (
    CommitFailed,
    InvalidState,
    KafkaError,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
    TransactionAborted,
)
from ottla.client.producer.transaction_requests import GroupOnly
from ottla.client.promise import Promise
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.testing.scripted_brokers import KEEP, ScriptedBrokers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
)
from tests.unit.client.producer.written_logs import (
    PartitionAnswer,
    Producing,
    WrittenLogs,
    answer_produce,
    error_of,
    refusing,
)

PID = 4000


class Coordinator:
    """Answers what transactional producers ask, and keeps what it was asked in `calls`."""

    def __init__(self, brokers: ScriptedBrokers, is_v2: bool) -> None:
        self.epoch = -1
        self.is_v2 = is_v2
        self._brokers = brokers
        brokers.answer("FindCoordinator", self.find)
        brokers.answer("InitProducerId", self.init)
        brokers.answer("AddPartitionsToTxn", self.add_partitions)
        brokers.answer("AddOffsetsToTxn", AddOffsetsToTxnResponse())
        brokers.answer("TxnOffsetCommit", self.commit_offsets)
        brokers.answer("EndTxn", self.end)

    @property
    def calls(self) -> list[str]:
        """The APIs that were asked, without those that find things out."""
        dull = ("ApiVersions", "Metadata", "FindCoordinator")
        return [one.api for one in self._brokers.transcript if one.api not in dull]

    def find(self, node_id: int, version: int, request: Any) -> Any:
        one = FindCoordinatorResponse.Coordinator(
            key=request.coordinator_keys[0], node_id=1, host="broker-1", port=9092
        )
        return FindCoordinatorResponse(coordinators=[one])

    def init(self, node_id: int, version: int, request: Any) -> Any:
        self.epoch += 1
        return InitProducerIdResponse(producer_id=PID, producer_epoch=self.epoch)

    def add_partitions(self, node_id: int, version: int, request: Any, code: int = 0) -> Any:
        assert version <= 3, "later versions are for brokers"
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=code
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def commit_offsets(self, node_id: int, version: int, request: Any, code: int = 0) -> Any:
        partitions = [
            TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                partition_index=one.partition_index, error_code=code
            )
            for one in request.topics[0].partitions
        ]
        topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=request.topics[0].name, partitions=partitions)
        return TxnOffsetCommitResponse(topics=[topic])

    def end(self, node_id: int, version: int, request: Any) -> Any:
        assert (version >= 5) == self.is_v2
        if not self.is_v2:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=PID, producer_epoch=self.epoch)


class Scene:
    def __init__(self, is_v2: bool, **settings: object) -> None:
        features = {"transaction.version": 2 if is_v2 else 1}
        self.brokers = ScriptedBrokers((1,), {"clicks": 2}, features=features)
        self.logs = WrittenLogs(self.brokers)
        self.coordinator = Coordinator(self.brokers, is_v2)
        self.producing = Producing(self.brokers, transactional_id="t", **settings)
        self.transactions = self.producing.core.the_transactions()
        self.send = self.producing.send

    def done(self, promise: Promise[None], within_ms: int = 2000) -> None:
        self.brokers.advance(within_ms)
        assert promise.is_done
        promise.value()

    def begin(self) -> None:
        if self.transactions.state.name == "UNINITIALIZED":
            self.done(self.transactions.init())
        self.transactions.begin()

    def commit(self) -> None:
        self.done(self.transactions.commit())

    def abort(self) -> None:
        self.done(self.transactions.abort())


both_protocols = pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])


def test_in_the_older_protocol_partitions_are_added_before_they_are_written_to() -> None:
    scene = Scene(is_v2=False)
    scene.begin()
    first, second = scene.send(partition=0), scene.send(partition=1)
    scene.commit()
    calls = scene.coordinator.calls
    assert (calls[:2], calls[-1]) == (["InitProducerId", "AddPartitionsToTxn"], "EndTxn")
    added = [topic for asked in scene.brokers.asked("AddPartitionsToTxn") for topic in asked.v3_and_below_topics]
    assert [(topic.name, list(topic.partitions)) for topic in added] == [("clicks", [0]), ("clicks", [1])]
    assert (first.result().partition, second.result().partition) == (0, 1)
    assert all(one.version <= 11 for one in scene.brokers.transcript if one.api == "Produce")
    assert scene.brokers.asked("Produce")[0].transactional_id == "t"
    assert scene.logs.headers["clicks", 0][0].is_transactional


def test_in_the_newer_protocol_the_leader_adds_them_and_each_end_brings_an_epoch() -> None:
    scene = Scene(is_v2=True)
    for _ in range(2):
        scene.begin()
        scene.send()
        scene.commit()
    assert scene.coordinator.calls == ["InitProducerId", "Produce", "EndTxn", "Produce", "EndTxn"]
    headers = [header for log in scene.logs.headers.values() for header in log]
    assert sorted((header.producer_epoch, header.base_sequence) for header in headers) == [(0, 0), (1, 0)]


def test_a_producer_gets_an_epoch_before_it_changes_to_the_newer_protocol() -> None:
    """The markers of the transaction before may still be on their way: they would end one of the same epoch."""
    scene = Scene(is_v2=False)
    scene.begin()
    scene.send(partition=0)
    scene.brokers.advance(100)
    scene.brokers.features["transaction.version"] = 2
    scene.brokers.drop_connections(1)
    scene.commit()
    scene.coordinator.is_v2 = True
    scene.begin()
    scene.send(partition=0)
    scene.commit()
    first = ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]
    assert scene.coordinator.calls == [*first, "InitProducerId", "Produce", "EndTxn"]
    assert [header.producer_epoch for header in scene.logs.headers["clicks", 0]] == [0, 1]


@both_protocols
def test_an_abort_drops_what_was_not_sent(is_v2: bool) -> None:
    scene = Scene(is_v2, linger_ms=1000)
    scene.begin()
    delivery = scene.send()
    scene.abort()
    assert error_of(delivery) is TransactionAborted
    assert not scene.brokers.asked("Produce")
    assert [request.committed for request in scene.brokers.asked("EndTxn")] in ([], [False])


@both_protocols
def test_an_abort_waits_for_what_is_on_its_way(is_v2: bool) -> None:
    scene = Scene(is_v2, linger_ms=0)
    scene.begin()
    scene.brokers.answer("Produce", KEEP)
    scene.send()
    scene.brokers.advance(50)
    aborted = scene.transactions.abort()
    scene.brokers.advance(50)
    assert not scene.brokers.asked("EndTxn")
    scene.brokers.answer("Produce", scene.logs.produce)
    scene.brokers.release()
    scene.done(aborted)
    assert [request.committed for request in scene.brokers.asked("EndTxn")] == [False]


@both_protocols
def test_an_empty_transaction_costs_the_coordinator_nothing(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.commit()
    assert scene.coordinator.calls == ["InitProducerId"]


@both_protocols
def test_a_record_that_fails_fails_the_transaction(is_v2: bool) -> None:
    scene = Scene(is_v2, linger_ms=0)
    scene.begin()
    scene.brokers.answer("Produce", refusing(scene.logs, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    scene.send()
    scene.brokers.advance(100)
    with pytest.raises(TransactionAbortable):
        scene.send()
    refused = scene.transactions.commit()
    assert isinstance(refused.error, TopicAuthorizationFailed)
    assert refused.error.abortable
    scene.abort()
    scene.brokers.answer("Produce", scene.logs.produce)
    scene.begin()
    delivery = scene.send()
    scene.commit()
    assert delivery.result().offset == 0
    headers = [header for log in scene.logs.headers.values() for header in log]
    assert headers[0].producer_epoch == 1, "an epoch of its own after the failure"


@both_protocols
def test_a_transaction_that_is_over_at_a_leader_is_aborted(is_v2: bool) -> None:
    """The marker of the one before came while the leader asked the coordinator (KIP-890); Java's aborts too."""
    scene = Scene(is_v2, linger_ms=0)
    scene.begin()
    scene.brokers.answer("Produce", refusing(scene.logs, ErrorCode.INVALID_TXN_STATE))
    scene.send()
    scene.brokers.advance(100)
    error = scene.transactions.commit().error
    assert isinstance(error, TransactionAbortable)
    assert error.abortable
    scene.abort()
    scene.brokers.answer("Produce", scene.logs.produce)
    scene.begin()
    delivery = scene.send()
    scene.commit()
    assert delivery.result().offset == 0


@both_protocols
def test_a_producer_that_was_fenced_off_cannot_go_on(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    scene.brokers.answer("EndTxn", EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH))
    with pytest.raises(ProducerFenced) as fenced:
        scene.commit()
    assert fenced.value.fatal
    for call in (scene.send, scene.begin, scene.transactions.abort):
        with pytest.raises(ProducerFenced):
            call()


@both_protocols
def test_offsets_are_committed_with_the_transaction(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    group = GroupOnly("readers", 7, "member-1", None)
    scene.done(scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5, "m", 3)}, group))
    scene.commit()
    (asked,) = scene.brokers.asked("TxnOffsetCommit")
    assert (asked.group_id, asked.generation_id, asked.member_id) == ("readers", 7, "member-1")
    (place,) = asked.topics[0].partitions
    assert (place.committed_offset, place.committed_metadata, place.committed_leader_epoch) == (5, "m", 3)
    assert len(scene.brokers.asked("AddOffsetsToTxn")) == (0 if is_v2 else 1)


@both_protocols
def test_offsets_of_a_member_that_has_lost_its_partitions_fail_the_transaction(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.brokers.answer(
        "TxnOffsetCommit", lambda *asked: scene.coordinator.commit_offsets(*asked, code=ErrorCode.ILLEGAL_GENERATION)
    )
    sent = scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5)}, GroupOnly("readers"))
    with pytest.raises(CommitFailed):
        scene.done(sent)
    assert isinstance(scene.transactions.commit().error, CommitFailed)
    scene.abort()
    scene.begin()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ],
)
@both_protocols
def test_what_the_coordinator_may_do_later_is_asked_again(is_v2: bool, code: int) -> None:
    scene = Scene(is_v2)
    scene.brokers.answer("InitProducerId", [InitProducerIdResponse(error_code=code), scene.coordinator.init])
    scene.begin()
    scene.brokers.answer(
        "AddPartitionsToTxn",
        [lambda *asked: scene.coordinator.add_partitions(*asked, code=code), scene.coordinator.add_partitions],
    )
    scene.brokers.answer("EndTxn", [EndTxnResponse(error_code=code), scene.coordinator.end])
    delivery = scene.send()
    scene.commit()
    assert delivery.result().offset == 0


def test_a_partition_that_cannot_be_added_fails_the_transaction() -> None:
    scene = Scene(is_v2=False)
    scene.begin()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    scene.brokers.answer("AddPartitionsToTxn", lambda *asked: scene.coordinator.add_partitions(*asked, code=code))
    delivery = scene.send()
    scene.brokers.advance(100)
    assert error_of(delivery) is TopicAuthorizationFailed, "at once, and not when it is too old"
    assert isinstance(scene.transactions.commit().error, TopicAuthorizationFailed)
    scene.abort()


def test_a_commit_that_waits_for_records_ends_when_their_partition_is_refused() -> None:
    scene = Scene(is_v2=False)
    scene.begin()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    scene.brokers.answer("AddPartitionsToTxn", lambda *asked: scene.coordinator.add_partitions(*asked, code=code))
    scene.send()
    committed = scene.transactions.commit()
    assert not committed.is_done
    scene.brokers.advance(100)
    assert isinstance(committed.error, TopicAuthorizationFailed)
    scene.abort()


def test_an_epoch_that_is_old_at_the_leader_is_abortable() -> None:
    """KIP-588: only the coordinator knows whether there is a newer producer."""
    scene = Scene(is_v2=False, linger_ms=0)
    scene.begin()
    scene.brokers.answer("Produce", refusing(scene.logs, ErrorCode.INVALID_PRODUCER_EPOCH))
    scene.send()
    scene.brokers.advance(100)
    error = scene.transactions.commit().error
    assert isinstance(error, KafkaError)
    assert error.abortable
    scene.abort()
    assert len(scene.brokers.asked("InitProducerId")) == 2, "the next epoch, or the news of being fenced (KIP-360)"
    assert scene.brokers.asked("InitProducerId")[1].producer_id == PID


@both_protocols
def test_commits_may_be_awaited_again_after_a_timeout(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    scene.brokers.answer("EndTxn", KEEP)
    first = scene.transactions.commit()
    scene.brokers.advance(100)
    assert scene.transactions.commit() is first
    scene.brokers.answer("EndTxn", scene.coordinator.end)
    scene.brokers.release()
    scene.done(first)
    scene.begin()


def test_a_call_that_waits_too_long_tells_why() -> None:
    scene = Scene(is_v2=True)
    scene.begin()
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    scene.brokers.answer("TxnOffsetCommit", lambda *asked: scene.coordinator.commit_offsets(*asked, code=code))
    sent = scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5)}, GroupOnly("readers"))
    scene.brokers.advance(1000)
    assert not sent.is_done
    assert "no such topic" in str(scene.transactions.too_late(1.0))


@both_protocols
def test_a_commit_waits_for_offsets_that_are_still_tried(is_v2: bool) -> None:
    """Their call has timed out, say. Committed without them, the records would be read and written once more."""
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    scene.brokers.answer("TxnOffsetCommit", lambda *asked: scene.coordinator.commit_offsets(*asked, code=loading))
    sent = scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5)}, GroupOnly("readers"))
    scene.brokers.advance(2000)
    committed = scene.transactions.commit()
    scene.brokers.advance(2000)
    assert not committed.is_done
    assert "EndTxn" not in scene.coordinator.calls
    scene.brokers.answer("TxnOffsetCommit", scene.coordinator.commit_offsets)
    scene.done(committed, within_ms=5000)
    sent.value()
    assert [one for one in scene.coordinator.calls if one in ("TxnOffsetCommit", "EndTxn")][-2:] == [
        "TxnOffsetCommit",
        "EndTxn",
    ]


@both_protocols
def test_an_abort_ends_the_attempts_to_commit_offsets(is_v2: bool) -> None:
    """One that came after it would be part of the next transaction, or fence the producer."""
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    scene.brokers.answer("TxnOffsetCommit", lambda *asked: scene.coordinator.commit_offsets(*asked, code=loading))
    sent = scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5)}, GroupOnly("readers"))
    scene.brokers.advance(2000)
    scene.done(scene.transactions.abort(), within_ms=5000)
    assert isinstance(sent.error, TransactionAborted)
    scene.brokers.answer("TxnOffsetCommit", scene.coordinator.commit_offsets)
    scene.begin()
    delivery = scene.send()
    scene.brokers.advance(5000)
    scene.commit()
    assert delivery.exception() is None
    calls = scene.coordinator.calls
    assert "TxnOffsetCommit" not in calls[calls.index("EndTxn") :]


@both_protocols
def test_an_abort_waits_for_offsets_that_are_on_their_way(is_v2: bool) -> None:
    scene = Scene(is_v2)
    scene.begin()
    scene.send()
    scene.brokers.answer("TxnOffsetCommit", KEEP)
    sent = scene.transactions.send_offsets({TopicPartition("clicks", 0): OffsetAndMetadata(5)}, GroupOnly("readers"))
    scene.brokers.advance(100)
    aborted = scene.transactions.abort()
    scene.brokers.advance(100)
    assert "EndTxn" not in scene.coordinator.calls
    scene.brokers.answer("TxnOffsetCommit", scene.coordinator.commit_offsets)
    scene.brokers.release()
    scene.done(aborted)
    sent.value()


def test_calls_out_of_turn_are_refused() -> None:
    scene = Scene(is_v2=True)
    with pytest.raises(InvalidState, match="not initialized"):
        scene.transactions.begin()
    with pytest.raises(InvalidState):
        scene.send()
    scene.begin()
    with pytest.raises(InvalidState, match="in a transaction"):
        scene.transactions.begin()
    scene.commit()
    with pytest.raises(InvalidState, match="between transactions"):
        scene.transactions.commit()


def test_a_producer_without_an_id_has_no_transactions() -> None:
    producing = Producing(ScriptedBrokers((1,), {"clicks": 1}))
    with pytest.raises(InvalidState, match=r"transactional\.id"):
        producing.core.the_transactions()


def test_records_of_a_transaction_that_were_given_up_leave_a_gap_and_so_abort_it() -> None:
    scene = Scene(is_v2=True, linger_ms=0, batch_size=0, delivery_timeout_ms=1000, request_timeout_ms=1000)
    scene.begin()
    scene.brokers.answer("Produce", KEEP)
    scene.send(partition=0)
    scene.brokers.advance(1500)
    assert scene.transactions.commit().error is not None
    scene.brokers.answer("Produce", scene.logs.produce)
    scene.abort()
    scene.begin()
    delivery = scene.send(partition=0)
    scene.commit()
    assert delivery.result().offset == 0


def test_answers_for_each_partition_are_told_apart() -> None:
    scene = Scene(is_v2=True, linger_ms=5)
    scene.begin()

    def only_the_first(name: str, index: int, data: Any) -> Any:
        if index == 1:
            return PartitionAnswer(index=1, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return scene.logs.append(name, index, bytes(data))

    scene.brokers.answer(
        "Produce", lambda _, version, asked: answer_produce(version, asked, only_the_first, scene.logs)
    )
    first, second = scene.send(partition=0), scene.send(partition=1)
    scene.brokers.advance(100)
    assert error_of(first) is None
    assert error_of(second) is TopicAuthorizationFailed
