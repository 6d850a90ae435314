"""Checks of APIs that brokers and controllers both answer.

Settings need a right on each topic and group, and on the cluster for everything else. Everybody may have delegation
tokens of their own (KIP-48, KIP-373).
"""

from typing import Any

from ottla.apis.error_responses import refusal_response
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.security.api_access import CLUSTER_WORDS, GROUP_WORDS, TOPIC_WORDS
from ottla.serving.access.check_shapes import with_entries
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode

_OF_THE_CLUSTER = (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS)


def describe_cluster(rights: Rights, question: Question) -> None:
    """Open to all; what the client may do with the cluster is in the reply if it asks."""

    def reply(response: Any) -> None:
        if question.request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = rights.cluster_operations()
        question.respond(response)

    question.proceed(question.request, reply)


def create_token(rights: Rights, question: Question) -> None:
    """For another owner CREATE_TOKENS on that user is needed."""
    request = question.request
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    is_for_another = bool(request.owner_principal_name) and owner != rights.principal
    if is_for_another and not rights.allow(AclOperation.CREATE_TOKENS, AclResource.USER, owner):
        question.refuse(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    else:
        question.pass_on()


def describe_configs(rights: Rights, question: Question) -> None:
    check_resources(rights, question, AclOperation.DESCRIBE_CONFIGS, "results")


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
    refusal: Any = refusal_response(question.request, question.version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for answer, error in zip(getattr(refusal, answers), errors, strict=True):
        answer.error_code, answer.error_message = error, _words(error)
    if all(errors):
        question.respond(refusal)
        return

    def reply(response: Any) -> None:
        """In the order of the request."""
        answered = iter(getattr(response, answers))
        joined = [
            denied if error else next(answered, None)
            for denied, error in zip(getattr(refusal, answers), errors, strict=True)
        ]
        setattr(response, answers, [one for one in joined if one is not None])
        question.respond(response)

    allowed = [one for one, error in zip(resources, errors, strict=True) if not error]
    question.proceed(with_entries(question.request, "resources", allowed), reply)


def _error(rights: Rights, operation: AclOperation, resource: Any) -> ErrorCode:
    """What is of no known kind is refused by the handler."""
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
