"""AssignReplicasToDirs: a broker says in which log directory it put a replica (KIP-858)."""

from collections.abc import Callable

from ottla.base.ids import Uuid
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import Located, change_of, changes_when_removed
from ottla.machines.metadata.controller.partition_change import Election
from ottla.machines.metadata.decisions.broker_epochs import check_broker_epoch
from ottla.machines.metadata.image.directory_ids import is_online
from ottla.machines.metadata.image.features import has_directory_assignment
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def assign_replicas_to_dirs(
    context: ControllerContext, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """A replica that was put into a directory which failed since leaves the ISR at once."""
    if not has_directory_assignment(context.metadata_version):
        return Decision(AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    stale = check_broker_epoch(context, request.broker_id, request.broker_epoch)
    if stale is not None:
        return Decision(AssignReplicasToDirsResponse(error_code=stale.code))
    broker = context.image.brokers.by_id[request.broker_id]
    reply = AssignReplicasToDirsResponse()
    records: list[VersionedRecord] = []
    lost: list[Located] = []
    for directory in request.directories:
        answer = AssignReplicasToDirsResponse.DirectoryData(id=directory.id)
        for topic in directory.topics:
            results = []
            for asked in topic.partitions:
                number = asked.partition_index
                error = _check(context, topic.topic_id, number, broker.id)
                if error is ErrorCode.NONE:
                    found = context.image.topics.by_id[topic.topic_id]
                    change = change_of(context, found.name, found.id, number)
                    change.directories[broker.id], change.election = directory.id, Election.ONLINE
                    change.can_lead = _with_directory(context, found.partitions[number], broker.id, directory.id)
                    record = change.record()
                    records += [] if record is None else [context.partition_change(record)]
                    if not is_online(directory.id, broker.directories):
                        lost.append((found.name, found.id, number, found.partitions[number]))
                results.append(AssignReplicasToDirsResponse.PartitionData(partition_index=number, error_code=error))
            answer.topics.append(AssignReplicasToDirsResponse.TopicData(topic_id=topic.topic_id, partitions=results))
        reply.directories.append(answer)
    records += changes_when_removed(context, broker.id, lost)
    return Decision(reply, records, atomic=False)


def _with_directory(
    context: ControllerContext, partition: PartitionImage, broker_id: int, directory: Uuid
) -> Callable[[int], bool]:
    """Who can lead when the replica is there: one that comes back from a directory that was lost can, at once."""
    pairs = zip(partition.replicas, partition.directories, strict=True)
    directories = tuple(directory if replica == broker_id else before for replica, before in pairs)
    after = partition._replace(directories=directories)
    return lambda replica: context.can_lead(replica, after)


def _check(context: ControllerContext, topic_id: Uuid, number: int, broker_id: int) -> ErrorCode:
    topic = context.image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if number not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in topic.partitions[number].replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
