"""Coverage marks: paths that runs must have reached, noticed from outside while they run.

What is never reached is never tried: a simulator that finds nothing has to show that it was there. The product knows
nothing of marks. They are set where its parts are called, by replacing a method with one that looks and calls it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final

from ottla.broker.coordination.coordinated_partition import CoordinatedPartition
from ottla.broker.data import batch_checks
from ottla.broker.data.fetch_sessions import FetchSessions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replicas import Replicas
from ottla.broker.transactions import transactional_produce
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.client.network.connections import Connections
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import ProducerState
from ottla.log.readable_log import ReadableLog
from ottla.log.recovery import Recovery
from ottla.machines.metadata.controller.partition_change import PartitionChange
from ottla.machines.metadata.decisions import (
    alter_partition,
    assign_directories,
    create_topics,
    heartbeats,
    reassign_partitions,
    registration,
    update_features,
)
from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metadata.snapshotter import Snapshotter
from ottla.runtime.metadata.storage.store import MetadataStore
from ottla.runtime.peers.node_connections import NodeConnections
from ottla.runtime.tls.tls_listener import TlsListener
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.open_request import BrokeProtocol

Look = Callable[[tuple[Any, ...], Any], bool]
"""Whether a call, with these arguments and this result, is what the mark is about."""


def _always(arguments: tuple[Any, ...], result: Any) -> bool:
    return True


def _is(error: ErrorCode) -> Look:
    return lambda arguments, result: result is error


def _has_compressed(arguments: tuple[Any, ...], result: Any) -> bool:
    batches = [one.records for topic in arguments[0].topic_data for one in topic.partition_data if one.records]
    return any(batch_checks.codec_of(batch) for batch in batches)


def _has_records(arguments: tuple[Any, ...], result: Any) -> bool:
    return bool(result.records)


def _grown(arguments: tuple[Any, ...], result: Any) -> bool:
    change = arguments[0]
    return result is not None and len(result.isr or ()) > len(change.partition.isr)


def _shrunk(arguments: tuple[Any, ...], result: Any) -> bool:
    change = arguments[0]
    return result is not None and 0 < len(result.isr or ()) < len(change.partition.isr)


def _elected_eligible(arguments: tuple[Any, ...], result: Any) -> bool:
    change = arguments[0]
    return result is not None and result.leader in change.partition.eligible_leader_replicas


def _completed(arguments: tuple[Any, ...], result: Any) -> bool:
    change = arguments[0]
    return change.partition.is_reassigning and not change.adding and not change.removing


def _was_done_before(error_of: Callable[[Any], int]) -> Look:
    """A decision that changes nothing, and is no refusal: the reply to the first request of the kind was lost."""
    return lambda arguments, result: not result.records and not error_of(result.reply)


def _exists(arguments: tuple[Any, ...], result: Any) -> bool:
    _, name = arguments
    is_own = name.startswith("__")  # Of the nodes' own, which several may ask for at a time.
    return result is not None and result.code is ErrorCode.TOPIC_ALREADY_EXISTS and not is_own


def _is_isr_already(arguments: tuple[Any, ...], result: Any) -> bool:
    _, partition, _, _, isr = arguments
    is_it = {replica.broker_id for replica in isr} == set(partition.isr)
    return result is ErrorCode.INVALID_UPDATE_VERSION and is_it


def _is_registered(arguments: tuple[Any, ...], result: Any) -> bool:
    context, request, *_ = arguments
    before = context.image.brokers.by_id.get(request.broker_id)
    return before is not None and before.incarnation_id == request.incarnation_id and bool(result.records)


def _is_unasked(arguments: tuple[Any, ...], result: Any) -> bool:
    """A connection was closed for a reply that nobody waited for."""
    *_, problem = arguments
    return isinstance(problem, BrokeProtocol) and "correlation id" in str(problem)


def _made_epoch(arguments: tuple[Any, ...], result: Any) -> bool:
    return bool(arguments[0].raft.epoch > 1)


MARKS: Final[dict[str, tuple[Any, str, Look]]] = {
    "a log was cut": (PartitionLog, "_prepare_truncation", _always),
    "an ISR shrank": (PartitionChange, "record", _shrunk),
    "an ISR grew": (PartitionChange, "record", _grown),
    "an eligible leader was elected": (PartitionChange, "record", _elected_eligible),
    "a reassignment was completed": (PartitionChange, "record", _completed),
    "a reassignment was cancelled": (reassign_partitions, "_cancel", lambda arguments, result: result is None),
    "a log was recovered after a crash": (Recovery, "_recover_from", _always),
    "a torn end was cut off": (Recovery, "_cut_off", _always),
    "a replica moved to another directory": (Partition, "change_log", _always),
    "a segment was rolled": (PartitionLog, "roll", _always),
    "segments were deleted": (PartitionLog, "_delete_first", lambda arguments, result: result > 0),
    "a log was compacted": (PartitionLog, "finish_replacement", lambda arguments, result: result),
    "records were deleted by request": (ReadableLog, "advance_log_start_offset", lambda arguments, result: result),
    "a transaction was aborted by its timeout": (TransactionCoordinator, "abort_timed_out", _has_records),
    "a snapshot of the metadata was taken": (Snapshotter, "_on_written", _always),
    "a snapshot was loaded from the leader": (MetadataLog, "_begin_after", _always),
    "a damaged snapshot of the metadata was done without": (MetadataStore, "_do_without", _always),
    "another controller took over": (MetadataLog, "begin_epoch", _made_epoch),
    "a fetch session was evicted": (FetchSessions, "_evict_for", lambda arguments, result: result),
    "a leader epoch was fenced": (Partition, "check_leader", _is(ErrorCode.FENCED_LEADER_EPOCH)),
    "a producer was fenced": (Verifications, "begin", _is(ErrorCode.INVALID_PRODUCER_EPOCH)),
    "a batch came twice": (ProducerState, "check", lambda arguments, result: result[1] is not None),
    "a broker was fenced": (heartbeats, "fence_silent_broker", _has_records),
    "a compressed transactional batch waited for its coordinator": (
        transactional_produce,
        "keep_records",
        _has_compressed,
    ),
    "a batch was checked by a worker": (batch_checks, "keep_records", _always),
    "a coordinator was loaded": (CoordinatedPartition, "on_loaded", _always),
    "a replica was dropped": (Replicas, "_drop", _always),
    "a feature was changed": (update_features, "update_features", _has_records),
    "a broker was unregistered": (registration, "unregister_broker", _has_records),
    "a connection was encrypted": (TlsListener, "_on_done", _always),
    # What was done, and is asked for again because nobody heard of it; "a batch came twice" is another.
    "partitions were added to a transaction again": (
        TransactionCoordinator,
        "add_partitions",
        _was_done_before(lambda reply: reply),
    ),
    "a transaction was ended again": (
        TransactionCoordinator,
        "end",
        _was_done_before(lambda reply: reply.error),
    ),
    "a client hung up on a reply that came twice": (Connections, "_on_closed", _is_unasked),
    "a node hung up on a reply that came twice": (NodeConnections, "_on_lost", _is_unasked),
    "a topic was created again": (create_topics, "_check_name", _exists),
    "an ISR was asked for again": (alter_partition, "_check", _is_isr_already),
    "a broker registered again": (registration, "register_broker", _is_registered),
    "the directory of a replica was reported again": (
        assign_directories,
        "assign_replicas_to_dirs",
        _was_done_before(lambda reply: reply.error_code),
    ),
}
"""By name: the part whose call sets it, and what is looked at. Several marks may watch one call."""


@contextmanager
def watching(reached: set[str]) -> Iterator[None]:
    """Within it, marks that are reached are put into `reached`."""
    watched: dict[tuple[Any, str], list[tuple[str, Look]]] = {}
    for name, (owner, method, look) in MARKS.items():
        watched.setdefault((owner, method), []).append((name, look))
    with ExitStack() as stack:
        for (owner, method), looks in watched.items():
            stack.enter_context(switched(owner, method, _looked_at(vars(owner)[method], looks, reached)))
        yield


def _looked_at(called: Any, looks: list[tuple[str, Look]], reached: set[str]) -> Any:
    left = dict(looks)

    @wraps(called)
    def call(*arguments: Any, **more: Any) -> Any:
        result = called(*arguments, **more)
        for name, look in list(left.items()):
            if look(arguments, result):
                reached.add(name)
                del left[name]
        return result

    return call
