"""CreateTopics: names, settings and placement are checked topic by topic; one that is refused does not stop the others.

The records of one request are one batch, so that a crash leaves all of its topics or none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.replica_placement import (
    check_manual_assignment,
    new_partition,
    place,
    usable_brokers,
)
from ottla.machines.metadata.decisions.alter_configs import setting_records
from ottla.machines.metadata.image.configs_image import ConfigResource, ResourceType
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.refusal import THROTTLED, Refusal
from ottla.machines.metadata.settings.effective_settings import effective_settings
from ottla.machines.metadata.topic_names import CLUSTER_METADATA, check_name
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest, CreateTopicsResponse, TopicRecord

MOST_PARTITIONS = 10_000
MOST_RECORDS = 10_000
"""Of one request: they are one batch of the metadata log, and the controller does nothing else meanwhile."""
DEFAULT_COUNT = -1

Topic = CreateTopicsRequest.CreatableTopic
Result = CreateTopicsResponse.CreatableTopicResult


def create_topics(context: ControllerContext, request: CreateTopicsRequest) -> Decision[CreateTopicsResponse]:
    reply = CreateTopicsResponse()
    times = Counter(topic.name for topic in request.topics)
    wanted = [topic for topic in request.topics if times[topic.name] == 1 and topic.name != CLUSTER_METADATA]
    if sum(_partition_count(context, topic) for topic in wanted) > MOST_PARTITIONS:
        return _too_much(times, "Excessively large number of partitions per request.")
    records: list[VersionedRecord] = []
    for topic in wanted:
        created = _create(context, topic)
        if isinstance(created, Refusal):
            reply.topics.append(_refused(topic.name, created))
        else:
            result, topic_records = created
            reply.topics.append(result)
            records += topic_records
        if len(records) > MOST_RECORDS:
            return _too_much(times, "Unable to perform excessively large batch operation.")
    for name in times:
        if times[name] > 1:
            reply.topics.append(_refused(name, Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")))
        elif name == CLUSTER_METADATA:
            prohibited = f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
            reply.topics.append(_refused(name, Refusal(ErrorCode.INVALID_REQUEST, prohibited)))
    return Decision(reply, [] if request.validate_only else records)


def _too_much(names: Iterable[str], problem: str) -> Decision[CreateTopicsResponse]:
    refusal = Refusal(ErrorCode.POLICY_VIOLATION, problem)
    return Decision(CreateTopicsResponse(topics=[_refused(name, refusal) for name in names]))


def _partition_count(context: ControllerContext, topic: Topic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT_COUNT:
        return context.config.integer("num.partitions")
    return max(0, topic.num_partitions)


def _create(context: ControllerContext, topic: Topic) -> tuple[Result, list[VersionedRecord]] | Refusal:
    refusal = _check_name(context, topic.name)
    if refusal is not None:
        return refusal
    configs = _configs(topic)
    if isinstance(configs, Refusal):
        return configs
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    config_records = setting_records(context, resource, {}, configs, is_new=True)
    if isinstance(config_records, Refusal):
        return config_records
    partitions = _assigned(context, topic) if topic.assignments else _placed(context, topic)
    if isinstance(partitions, Refusal):
        return partitions
    if not context.admit(len(partitions)):
        return THROTTLED
    topic_id = context.new_uuid()
    records = [VersionedRecord(TopicRecord(name=topic.name, topic_id=topic_id), 0), *config_records]
    records += context.partition_records(topic_id, partitions)
    result = Result(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=_effective(context, configs),
    )
    return result, records


def _check_name(context: ControllerContext, name: str) -> Refusal | None:
    if name in context.image.topics.by_name:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    refusal = check_name(name)
    if refusal is not None:
        return refusal
    other = context.image.topics.colliding_with(name)
    if other is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
    return None


def _configs(topic: Topic) -> dict[str, str] | Refusal:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _assigned(context: ControllerContext, topic: Topic) -> list[PartitionImage] | Refusal:
    """The partitions that the client placed itself."""
    for given, name in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
        if given != DEFAULT_COUNT:
            problem = f"A manual partition assignment was specified, but {name} was not set to -1."
            return Refusal(ErrorCode.INVALID_REQUEST, problem)
    partitions: dict[int, PartitionImage] = {}
    replication_factor = None
    for assignment in topic.assignments:
        number = assignment.partition_index
        if number in partitions:
            return _wrong_assignment(f"Found multiple manual partition assignments for partition {number}")
        refusal = check_manual_assignment(assignment.broker_ids, replication_factor, context)
        if refusal is not None:
            return refusal
        replication_factor = len(assignment.broker_ids)
        partition = new_partition(assignment.broker_ids, context)
        if partition is None:
            return _wrong_assignment(
                f"All brokers specified in the manual partition assignment for partition {number} "
                "are fenced or in controlled shutdown."
            )
        partitions[number] = partition
    if set(partitions) != set(range(len(partitions))):
        return _wrong_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[number] for number in range(len(partitions))]


def _placed(context: ControllerContext, topic: Topic) -> list[PartitionImage] | Refusal:
    if topic.replication_factor < DEFAULT_COUNT or topic.replication_factor == 0:
        problem = "Replication factor must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    if topic.num_partitions < DEFAULT_COUNT or topic.num_partitions == 0:
        problem = "Number of partitions was set to an invalid non-positive value."
        return Refusal(ErrorCode.INVALID_PARTITIONS, problem)
    replication_factor = topic.replication_factor
    if replication_factor == DEFAULT_COUNT:
        replication_factor = context.config.integer("default.replication.factor")
    return place_partitions(context, _partition_count(context, topic), replication_factor)


def place_partitions(context: ControllerContext, count: int, replication_factor: int) -> list[PartitionImage] | Refusal:
    """New partitions where the placer puts them."""
    unable = f"Unable to replicate the partition {replication_factor} time(s): "
    placed = place(count, replication_factor, usable_brokers(context), context.random)
    if isinstance(placed, Refusal):
        return Refusal(placed.code, unable + str(placed.message))
    made: dict[tuple[int, ...], PartitionImage | None] = {}
    for replicas in map(tuple, placed):
        if replicas not in made:
            made[replicas] = new_partition(replicas, context)
    partitions = [made[tuple(replicas)] for replicas in placed]
    led = [partition for partition in partitions if partition is not None]
    if len(led) < len(partitions):
        problem = unable + "All brokers are currently fenced or in controlled shutdown."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    return led


def _effective(
    context: ControllerContext, configs: Mapping[str, str]
) -> list[CreateTopicsResponse.CreatableTopicConfigs]:
    image = context.image.configs
    found = effective_settings(configs, image.of_broker(context.node_id), image.of_cluster(), context.config)
    return [
        CreateTopicsResponse.CreatableTopicConfigs(name=name, value=text, config_source=source)
        for name, text, source in found
    ]


def _refused(name: str, refusal: Refusal) -> Result:
    return Result(name=name, error_code=refusal.code, error_message=refusal.message)


def _wrong_assignment(problem: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
