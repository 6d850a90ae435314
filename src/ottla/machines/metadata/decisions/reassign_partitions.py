"""AlterPartitionReassignments and its listing: replicas move, and are dropped once the new ones are in sync (KIP-455).

While it lasts, a partition has both: the replicas that are added and, at the end, those that are to be removed.

A reassignment that is under way can be given another target, and then what was to be added and is not in the new target
is to be removed. Apache Kafka 4.3.1 keeps the old lists where the new ones would be empty. So a replica there is to be
added and removed at once, and the reassignment never ends, when an operator names the replicas that the partition had
before (the assignment that `kafka-reassign-partitions` prints for a rollback); or it drops a replica that was named.
Here no replica is in both lists, none that was named is removed, and naming the replicas that the partition had ends
the reassignment at once.
"""

from collections.abc import Sequence

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import change_of
from ottla.machines.metadata.controller.partition_change import Election, PartitionChange, without
from ottla.machines.metadata.controller.replica_placement import check_manual_assignment
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.image.topics_image import TopicImage
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def alter_partition_reassignments(
    context: ControllerContext, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    may_change_factor = request.allow_replication_factor_change
    reply = AlterPartitionReassignmentsResponse(error_message=None, allow_replication_factor_change=may_change_factor)
    records: list[VersionedRecord] = []
    for asked in request.topics:
        results = []
        for wanted in asked.partitions:
            made = _reassign(context, asked.name, wanted.partition_index, wanted.replicas, may_change_factor)
            code, message = made if isinstance(made, Refusal) else (ErrorCode.NONE, None)
            if isinstance(made, VersionedRecord):
                records.append(made)
            results.append(
                AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                    partition_index=wanted.partition_index, error_code=code, error_message=message
                )
            )
        reply.responses.append(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=asked.name, partitions=results)
        )
    return Decision(reply, records)


def list_partition_reassignments(
    context: ControllerContext, request: ListPartitionReassignmentsRequest
) -> Decision[ListPartitionReassignmentsResponse]:
    topics = context.image.topics
    reply = ListPartitionReassignmentsResponse(error_message=None)
    if request.topics is None:
        wanted = [(topic, sorted(topic.partitions)) for topic in topics.by_id.values()]
    else:
        known = [asked for asked in request.topics if asked.name in topics.by_name]
        wanted = [(topics.by_name[asked.name], list(asked.partition_indexes)) for asked in known]
    for topic, numbers in wanted:
        ongoing = [_ongoing(topic, n) for n in numbers if n in topic.partitions and topic.partitions[n].is_reassigning]
        if ongoing:
            reply.topics.append(
                ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=topic.name, partitions=ongoing)
            )
    return Decision(reply)


def _reassign(
    context: ControllerContext, name: str, number: int, replicas: Sequence[int] | None, may_change_factor: bool
) -> VersionedRecord | Refusal | None:
    topic = context.image.topics.by_name.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(number)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{number}.")
    change = change_of(context, name, topic.id, number)
    if replicas is None:
        refusal = _cancel(change, partition, name, number)
    else:
        refusal = _start(context, change, partition, replicas, may_change_factor)
    if refusal is not None:
        return refusal
    record = change.record()
    return None if record is None else context.partition_change(record)


def _cancel(change: PartitionChange, partition: PartitionImage, name: str, number: int) -> Refusal | None:
    if not partition.is_reassigning:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    change.replicas = without(partition.replicas, partition.adding_replicas)
    change.isr = without(partition.isr, partition.adding_replicas)
    if not change.isr:
        if not change.replicas:
            problem = "Invalid replica assignment: addingReplicas contains all replicas."
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if change.election is not Election.UNCLEAN:
            problem = (
                f"Unable to revert partition assignment for {name}:{number} because it would require an unclean "
                "leader election."
            )
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        change.isr = change.replicas[:1]
    change.removing = change.adding = ()
    return None


def _start(
    context: ControllerContext,
    change: PartitionChange,
    partition: PartitionImage,
    replicas: Sequence[int],
    may_change_factor: bool,
) -> Refusal | None:
    refusal = check_manual_assignment(replicas, None, context)
    if refusal is not None:
        return refusal
    target = {*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas)
    if not may_change_factor and len(target) != len(replicas):
        problem = f"The replication factor is changed from {len(target)} to {len(replicas)}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    change.election = Election.ONLINE
    had = set(partition.replicas) - set(partition.adding_replicas)
    isr_before = without(partition.isr, partition.adding_replicas)
    if set(replicas) == had and isr_before:
        change.replicas, change.isr = tuple(replicas), isr_before
        change.removing = change.adding = ()
        return None
    change.removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    change.replicas = (*replicas, *change.removing)
    adding = tuple(sorted(set(replicas) - set(partition.replicas)))
    change.adding = adding or tuple(replica for replica in partition.adding_replicas if replica in replicas)
    return None


def _ongoing(topic: TopicImage, number: int) -> ListPartitionReassignmentsResponse.OngoingPartitionReassignment:
    partition = topic.partitions[number]
    return ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index=number,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
    )
