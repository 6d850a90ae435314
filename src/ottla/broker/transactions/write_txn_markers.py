"""WriteTxnMarkers, versions 1 and 2: a coordinator, or an administrator, ends a transaction in partitions led here."""

from functools import partial

from ottla.base.ids import TopicPartition
from ottla.base.ports import Clock
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.transactions.marker_writing import Errors, Marker, MarkerServices, write_markers
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle_write_txn_markers(
    partitions: Partitions,
    clock: Clock,
    verifications: Verifications,
    groups: Groups,
    _context: RequestContext,
    request: WriteTxnMarkersRequest,
    respond: Respond,
) -> None:
    errors: dict[int, Errors] = {}
    remaining = len(request.markers)
    services = MarkerServices(partitions, clock, verifications, groups)

    def on_written(producer_id: int, written: Errors) -> None:
        nonlocal remaining
        errors.setdefault(producer_id, {}).update(written)
        remaining -= 1
        if not remaining:
            respond(_response(errors))

    if not remaining:
        respond(_response(errors))
    for one in request.markers:
        marker = Marker(
            one.producer_id, one.producer_epoch, one.transaction_result, one.coordinator_epoch, one.transaction_version
        )
        named = [TopicPartition(topic.name, index) for topic in one.topics for index in topic.partition_indexes]
        write_markers(services, marker, named, partial(on_written, one.producer_id))


def _response(errors: dict[int, Errors]) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse()
    for producer_id, of_partitions in errors.items():
        by_topic: dict[str, list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]] = {}
        for (topic, index), error in of_partitions.items():
            by_topic.setdefault(topic, []).append(_PartitionResult(partition_index=index, error_code=error))
        topics = [_TopicResult(name=name, partitions=partitions) for name, partitions in by_topic.items()]
        response.markers.append(_MarkerResult(producer_id=producer_id, topics=topics))
    return response
