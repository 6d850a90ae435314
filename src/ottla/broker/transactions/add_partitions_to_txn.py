"""AddPartitionsToTxn, versions 0 to 5: partitions that a transaction is about to reach, or should have reached.

Versions 0 to 3 are for producers of the older protocol, with one transaction. Versions 4 and 5 are for brokers, with
several, which each are added to (KIP-890) or only looked at. All partitions of a transaction are added, or none.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.transactions.coordinator_questions import Answered, Producer
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.runtime.large_requests.parts import MOST_BYTES_AT_ONCE
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

if TYPE_CHECKING:
    from ottla.machines.transaction.replies import Verified

_FOR_BROKERS = 4
_KNOWS_FENCED = 2
_OLDER = 0

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
# What replies are made like.
_TOPIC_RESULT = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult()
_PARTITION_RESULT = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult()

CLIENT_VERSION: Final = 2
"""The `transaction.version` that a client speaks which leaves adding partitions to the broker."""


def handle_add_partitions_to_txn(
    transactions: Transactions,
    metadata: ClusterMetadata,
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
    respond: Respond,
) -> None:
    if context.api_version >= _FOR_BROKERS:
        _answer_broker(transactions, metadata, request, respond)
        return
    transaction = _Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        if context.api_version < _KNOWS_FENCED:
            errors = {
                name: ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
                for name, error in errors.items()
            }
        respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(transaction.topics, errors)))

    if context.size > MOST_BYTES_AT_ONCE:
        context.go_through(_refuse_or_add(transactions, metadata, transaction, answer, respond))
    else:
        _add(transactions, metadata, transaction, _OLDER, answer)


def _refuse_or_add(
    transactions: Transactions,
    metadata: ClusterMetadata,
    transaction: _Transaction,
    then: Answered,
    respond: Respond,
) -> Steps:
    """As `_add`. Very many partitions are mostly not there, and then it is all in steps."""
    found: dict[TopicPartition, ErrorCode] = {}
    for topic in transaction.topics:
        found |= _found(metadata, [topic])
        yield None
    if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION not in found.values():
        _add(transactions, metadata, transaction, _OLDER, then)
        return
    response = AddPartitionsToTxnResponse()
    for topic in transaction.topics:
        response.results_by_topic_v3_and_below += _results([topic], found)
        yield None
    respond(response)


def _answer_broker(
    transactions: Transactions, metadata: ClusterMetadata, request: AddPartitionsToTxnRequest, respond: Respond
) -> None:
    response = AddPartitionsToTxnResponse()
    remaining = len(request.transactions)
    if not remaining:
        respond(response)

    def answer(transaction: _Transaction, errors: dict[TopicPartition, ErrorCode]) -> None:
        response.results_by_transaction.append(
            _Result(transactional_id=transaction.transactional_id, topic_results=_results(transaction.topics, errors))
        )
        if len(response.results_by_transaction) == remaining:
            respond(response)

    for one in request.transactions:
        _add(transactions, metadata, one, CLIENT_VERSION, partial(answer, one))


def _add(
    transactions: Transactions,
    metadata: ClusterMetadata,
    transaction: _Transaction,
    client_version: int,
    then: Answered,
) -> None:
    errors = _found(metadata, transaction.topics)
    if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in errors.values():
        then(errors)
        return
    partitions = [TopicPartition(*name) for name in errors]
    if not transaction.transactional_id:
        then(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        return
    producer = Producer(transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        _verify(transactions, producer, partitions, then)
        return

    def answered(error: ErrorCode) -> None:
        then(dict.fromkeys(partitions, error))

    transactions.submit(
        producer.transactional_id,
        lambda machine, now_ms: machine.add_partitions(*producer, partitions, client_version, now_ms),
        answered,
        answered,
    )


def _found(metadata: ClusterMetadata, topics: Sequence[_Topic]) -> dict[TopicPartition, ErrorCode]:
    """Each partition once, with what is said of it if the cluster does not have all of them. There may be very many."""
    found: dict[tuple[str, int], ErrorCode] = {}
    by_name = metadata.image.topics.by_name
    for topic in topics:
        known = by_name.get(topic.name)
        there = known.partitions if known is not None else ()
        for index in topic.partitions:
            found[topic.name, index] = (
                ErrorCode.OPERATION_NOT_ATTEMPTED if index in there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    return found  # type: ignore[return-value]


def _verify(transactions: Transactions, producer: Producer, partitions: list[TopicPartition], then: Answered) -> None:
    def answered(verified: "Verified") -> None:
        if verified.error:
            then(dict.fromkeys(partitions, verified.error))
        else:
            then(dict.fromkeys(verified.missing, ErrorCode.TRANSACTION_ABORTABLE))

    transactions.query(
        producer.transactional_id,
        lambda machine, _now_ms: machine.verify_partitions(*producer, partitions),
        answered,
        lambda error: then(dict.fromkeys(partitions, error)),
    )


def _results(
    topics: Sequence[_Topic], errors: dict[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = []
    for topic in topics:
        answered = like(_TOPIC_RESULT)
        answers = answered.results_by_partition = []
        answered.name = topic.name
        for index in topic.partitions:
            answer = like(_PARTITION_RESULT)
            answer.partition_index = index
            answer.partition_error_code = errors.get((topic.name, index), ErrorCode.NONE)  # type: ignore[call-overload]
            answers.append(answer)
        results.append(answered)
    return results
