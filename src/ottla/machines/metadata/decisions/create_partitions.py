"""CreatePartitions: a topic gets more partitions, never fewer, with as many replicas as it has."""

from collections import Counter

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.replica_placement import check_manual_assignment, new_partition
from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS, place_partitions
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.refusal import THROTTLED, Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse

Assignment = CreatePartitionsRequest.CreatePartitionsAssignment
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(
    context: ControllerContext, request: CreatePartitionsRequest
) -> Decision[CreatePartitionsResponse]:
    reply = CreatePartitionsResponse()
    records: list[VersionedRecord] = []
    times = Counter(topic.name for topic in request.topics)
    for name in times:
        if times[name] > 1:
            reply.results.append(_result(name, Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")))
    for topic in request.topics:
        if times[topic.name] == 1:
            made = _grow(context, topic, MOST_RECORDS - len(records))
            reply.results.append(_result(topic.name, made if isinstance(made, Refusal) else None))
            records += [] if isinstance(made, Refusal) else made
    return Decision(reply, [] if request.validate_only else records)


def _grow(
    context: ControllerContext, wanted: CreatePartitionsRequest.CreatePartitionsTopic, most: int
) -> list[VersionedRecord] | Refusal:
    """The records of the partitions that are added, `most` of them; Kafka has no better name for more."""
    topic = context.image.topics.by_name.get(wanted.name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if wanted.count == count:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wanted.count < count:
        problem = f"The topic {topic.name} currently has {count} partition(s); {wanted.count} would not be an increase."
        return Refusal(ErrorCode.INVALID_PARTITIONS, problem)
    added, replication_factor = wanted.count - count, len(topic.partitions[0].replicas)
    if added > most and (wanted.assignments is None or len(wanted.assignments) == added):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    if wanted.assignments is not None:
        made = _assigned(context, wanted.assignments, added, count, replication_factor)
    else:
        made = place_partitions(context, added, replication_factor)
    if isinstance(made, Refusal):
        return made
    if not context.admit(added):
        return THROTTLED
    return context.partition_records(topic.id, made, first=count)


def _assigned(
    context: ControllerContext, assignments: list[Assignment], added: int, first: int, replication_factor: int
) -> list[PartitionImage] | Refusal:
    if len(assignments) != added:
        given = f"only {len(assignments)} assignment(s) were specified."
        problem = f"Attempted to add {added} additional partition(s), but {given}"
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    partitions = []
    for number, assignment in enumerate(assignments, start=first):
        refusal = check_manual_assignment(assignment.broker_ids, replication_factor, context)
        if refusal is not None:
            return refusal
        partition = new_partition(assignment.broker_ids, context)
        if partition is None:
            problem = (
                f"All brokers specified in the manual partition assignment for partition {number} "
                "are fenced or in controlled shutdown."
            )
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        partitions.append(partition)
    return partitions


def _result(name: str, refusal: Refusal | None) -> Result:
    code, message = refusal or (ErrorCode.NONE, None)
    return Result(name=name, error_code=code, error_message=message)
