"""DeleteTopics, by name or by id. A topic that is meant twice, in whatever way, is not deleted at all."""

from collections import Counter

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.refusal import THROTTLED, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse, RemoveTopicRecord

FIRST_WITH_TOPIC_DELETION_DISABLED = 3

Result = DeleteTopicsResponse.DeletableTopicResult


def delete_topics(
    context: ControllerContext, request: DeleteTopicsRequest, version: int
) -> Decision[DeleteTopicsResponse]:
    """Versions before 6 have a list of names only."""
    if not context.config["delete.topic.enable"]:
        return Decision(_all_refused(request, version))
    topics = context.image.topics
    results: list[Result] = []
    names = Counter(request.topic_names)
    ids = Counter[Uuid]()
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            both = "You may not specify both topic name and topic id."
            results.append(_refused(topic.name, topic.topic_id, both))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            results.append(_refused(None, ZERO_UUID, "Neither topic name nor id were specified."))
    results += [_refused(name, ZERO_UUID, "Duplicate topic name.") for name in names if names[name] > 1]
    results += [_refused(None, id, "Duplicate topic id.") for id in ids if ids[id] > 1]

    deleted: dict[Uuid, str] = {}
    for id in (id for id in ids if ids[id] == 1):
        if id in topics.by_id:
            deleted[id] = topics.by_id[id].name
        else:
            results.append(_result(None, id, UNKNOWN_TOPIC_ID))
    for name in (name for name in names if names[name] == 1):
        found = topics.by_name.get(name)
        if found is None:
            results.append(_result(name, ZERO_UUID, UNKNOWN_TOPIC))
        elif found.id in ids:
            deleted.pop(found.id, None)
            results.append(_refused(name, found.id, "The provided topic name maps to an ID that was already supplied."))
        else:
            deleted[found.id] = name
    for id, name in list(deleted.items()):
        if not context.admit(len(topics.by_id[id].partitions)):
            del deleted[id]
            results.append(_result(name, id, THROTTLED))
    results += [Result(name=name, topic_id=id, error_message=None) for id, name in deleted.items()]
    records = [VersionedRecord(RemoveTopicRecord(topic_id=id), 0) for id in deleted]
    return Decision(DeleteTopicsResponse(responses=results), records)


def _all_refused(request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
    knows = version >= FIRST_WITH_TOPIC_DELETION_DISABLED
    refusal = Refusal(ErrorCode.TOPIC_DELETION_DISABLED if knows else ErrorCode.INVALID_REQUEST)
    asked = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[_result(name, id, refusal) for name, id in asked])


def _refused(name: str | None, topic_id: Uuid, message: str) -> Result:
    return _result(name, topic_id, Refusal(ErrorCode.INVALID_REQUEST, message))


def _result(name: str | None, topic_id: Uuid, refusal: Refusal) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=refusal.code, error_message=refusal.message)
