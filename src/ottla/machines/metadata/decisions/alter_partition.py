"""AlterPartition: a leader asks for another ISR; the partition epoch makes sure that it knew the last one (KIP-497)."""

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import change_of
from ottla.machines.metadata.decisions.broker_epochs import check_broker_epoch
from ottla.machines.metadata.image.partition_image import LEADER_UNCHANGED, RECOVERED, RECOVERING, PartitionImage
from ottla.machines.metadata.image.topics_image import TopicImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterPartitionRequest, AlterPartitionResponse

FIRST_VERSION_WITH_EPOCHS = 3
ANY_EPOCH = -1

Wanted = AlterPartitionRequest.PartitionData
Answer = AlterPartitionResponse.PartitionData
Replica = AlterPartitionRequest.BrokerState


def alter_partition(
    context: ControllerContext, request: AlterPartitionRequest, version: int
) -> Decision[AlterPartitionResponse]:
    stale = check_broker_epoch(context, request.broker_id, request.broker_epoch)
    if stale is not None:
        return Decision(AlterPartitionResponse(error_code=stale.code))
    reply = AlterPartitionResponse()
    records: list[VersionedRecord] = []
    for asked in request.topics:
        topic = context.image.topics.by_id.get(asked.topic_id)
        answers = []
        for wanted in asked.partitions:
            if topic is None:
                answers.append(_refused(wanted, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            isr = wanted.new_isr_with_epochs
            if version < FIRST_VERSION_WITH_EPOCHS:
                isr = [Replica(broker_id=broker_id, broker_epoch=ANY_EPOCH) for broker_id in wanted.new_isr]
            answer, record = _alter(context, topic, request.broker_id, wanted, isr)
            answers.append(answer)
            records += [] if record is None else [record]
        reply.topics.append(AlterPartitionResponse.TopicData(topic_id=asked.topic_id, partitions=answers))
    return Decision(reply, records, atomic=False)


def _alter(
    context: ControllerContext, topic: TopicImage, broker_id: int, wanted: Wanted, isr: list[Replica]
) -> tuple[Answer, VersionedRecord | None]:
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        return _refused(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    error = _check(context, partition, broker_id, wanted, isr)
    if error is not ErrorCode.NONE:
        return _refused(wanted, error), None
    change = change_of(context, topic.name, topic.id, wanted.partition_index)
    change.isr = tuple(replica.broker_id for replica in isr)
    change.leader_recovery_state = wanted.leader_recovery_state
    record = change.record()
    if record is not None:
        partition = partition.merge(record)
        if record.leader not in (broker_id, LEADER_UNCHANGED):
            # A reassignment was completed, and the leader was not part of it.
            return _refused(wanted, ErrorCode.NEW_LEADER_ELECTED), context.partition_change(record)
    answer = Answer(
        partition_index=wanted.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    return answer, None if record is None else context.partition_change(record)


def _check(
    context: ControllerContext, partition: PartitionImage, broker_id: int, wanted: Wanted, isr: list[Replica]
) -> ErrorCode:
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows more than we do: we are not the controller any more
    if wanted.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    ids = [replica.broker_id for replica in isr]
    if not ids or len(set(ids)) < len(ids) or not set(ids) <= set(partition.replicas) or partition.leader not in ids:
        return ErrorCode.INVALID_REQUEST
    if wanted.leader_recovery_state == RECOVERING and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    for replica in isr:
        broker = context.image.brokers.by_id.get(replica.broker_id)
        if broker is None or not broker.is_active or replica.broker_epoch not in (ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _refused(wanted: Wanted, error: ErrorCode) -> Answer:
    return Answer(partition_index=wanted.partition_index, error_code=error)
