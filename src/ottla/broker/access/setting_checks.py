"""Settings: of topics and groups on each, of everything else on the cluster."""

from typing import Any

from ottla.broker.access.check_shapes import CLUSTER_WORDS, GROUP_WORDS, TOPIC_WORDS, with_entries
from ottla.broker.access.rights import Question, Rights
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.wire.acls import AclOperation
from ottla.wire.error_responses import refusal_response
from ottla.wire.errors import ErrorCode

_OF_THIS_NODE = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
_OF_THE_CLUSTER = (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS)


def describe_configs(rights: Rights, question: Question) -> None:
    check_resources(rights, question, AclOperation.DESCRIBE_CONFIGS, "results")


def alter_configs(rights: Rights, question: Question) -> None:
    """The controller looks after topics, groups and metrics. Loggers are this node's own, and it reads the files that
    settings of brokers name: so the right to change these is looked at before that.
    """
    check_resources(rights, question, AclOperation.ALTER_CONFIGS, "responses", only=_OF_THIS_NODE)


def check_resources(
    rights: Rights, question: Question, operation: AclOperation, answers: str, *, only: tuple[int, ...] | None = None
) -> None:
    resources = question.request.resources
    errors = [
        _error(rights, operation, one) if only is None or one.resource_type in only else ErrorCode.NONE
        for one in resources
    ]
    if not any(errors):
        question.pass_on()
        return
    told: Any = refusal_response(question.request, question.version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for answer, error in zip(getattr(told, answers), errors, strict=True):
        answer.error_code, answer.error_message = error, _words(error)
    if all(errors):
        question.respond(told)
        return

    def reply(response: Any) -> None:
        """In the order of the request."""
        answered = iter(getattr(response, answers))
        joined = [
            denied if error else next(answered, None)
            for denied, error in zip(getattr(told, answers), errors, strict=True)
        ]
        setattr(response, answers, [one for one in joined if one is not None])
        question.respond(response)

    allowed = [one for one, error in zip(resources, errors, strict=True) if not error]
    question.go_on(with_entries(question.request, "resources", allowed), reply)


def _error(rights: Rights, operation: AclOperation, resource: Any) -> ErrorCode:
    """What is of no known kind is told so by the handler."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.TOPIC:
        return ErrorCode.NONE if rights.allow_topic(operation, name) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if kind == ResourceType.GROUP:
        return ErrorCode.NONE if rights.allow_group(operation, name) else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if kind in _OF_THE_CLUSTER and not rights.allow_cluster(operation):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _words(error: int) -> str:
    return {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: TOPIC_WORDS,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: GROUP_WORDS,
    }.get(ErrorCode(error), CLUSTER_WORDS)
