"""AlterConfigs 0-2 and IncrementalAlterConfigs 0-1: new settings for topics, brokers, groups, metrics and loggers.

Loggers are this node's own business and are set here. The rest is the controller's to check and to keep; but what is
meant for one broker must be sent to that broker (KIP-226), which is checked here, where it is known who we are. The
old API replaces all settings of a resource, the incremental one (KIP-339) changes some. Replies are in the request's
order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ottla.broker.admin.settings.logger_changes import change_loggers
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.cluster.node_identity import NodeIdentity
from ottla.machines.metadata.decisions.alter_configs import ALTERABLE, Operation
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.refusal import Refusal
from ottla.runtime.channels import Caller, ControllerChannel
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource: TypeAlias = AlterConfigsRequest.AlterConfigsResource | IncrementalAlterConfigsRequest.AlterConfigsResource
Key: TypeAlias = tuple[int, str]
Changes: TypeAlias = Mapping[str, str | None]


def handle_incremental_alter_configs(
    identity: NodeIdentity,
    node_settings: NodeSettings,
    controller: ControllerChannel,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
    respond: Respond,
) -> None:
    def changes_of(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Changes:
        return {
            change.name: change.value if change.config_operation != Operation.DELETE else None
            for change in resource.configs
        }

    def carry_out(problem: str | None) -> None:
        def check(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Refusal | None:
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                return change_loggers(identity.node_id, resource, validate_only=request.validate_only)
            if resource.resource_type not in ALTERABLE:
                return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
            return _check_broker(node_settings.node_id, resource, changes_of(resource), problem)

        _Alteration(request, IncrementalAlterConfigsResponse, check).carry_out(controller, context, respond)

    _after_checks(node_settings, context, request.resources, changes_of, carry_out)


def handle_alter_configs(
    node_settings: NodeSettings,
    controller: ControllerChannel,
    context: RequestContext,
    request: AlterConfigsRequest,
    respond: Respond,
) -> None:
    def changes_of(resource: AlterConfigsRequest.AlterConfigsResource) -> Changes:
        return {config.name: config.value for config in resource.configs}

    def carry_out(problem: str | None) -> None:
        def check(resource: AlterConfigsRequest.AlterConfigsResource) -> Refusal | None:
            return _check_broker(node_settings.node_id, resource, changes_of(resource), problem)

        _Alteration(request, AlterConfigsResponse, check).carry_out(controller, context, respond)

    _after_checks(node_settings, context, request.resources, changes_of, carry_out)


def _after_checks(
    node_settings: NodeSettings,
    context: RequestContext,
    resources: Sequence[Any],
    changes_of: Callable[[Any], Changes],
    carry_out: Callable[[str | None], None],
) -> None:
    """Goes on when it is known what this node could not use of its settings, if there are any of files and keys.

    The requests of the connection that are behind this one wait: the next may be about the same setting.
    """
    own = (ResourceType.BROKER, str(node_settings.node_id))
    changes = next((changes_of(resource) for resource in resources if _key(resource) == own), {})
    if not node_settings.has_to_check(changes):
        carry_out(None)
        return
    connection = context.connection
    connection.pause()
    node_settings.find_problem(changes, lambda problem: connection.resume_with(lambda: carry_out(problem)))


class _Alteration:
    """A request of either API, which have the same shape: what is settled here, and what the controller is to decide.

    `_verdicts` has what `check` says of each resource; None is for the controller.
    """

    def __init__(self, request: Any, response: Any, check: Callable[[Any], Refusal | None]) -> None:
        times = Counter(map(_key, request.resources))
        twice = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        self._resources: list[Any] = request.resources
        self._response = response
        self._verdicts = [twice if times[_key(resource)] > 1 else check(resource) for resource in request.resources]
        self._rest = type(request)(
            resources=[resource for resource, verdict in self._pairs() if verdict is None],
            validate_only=request.validate_only,
        )

    def carry_out(self, controller: ControllerChannel, context: RequestContext, respond: Respond) -> None:
        if not self._rest.resources:
            respond(self._reply({}))
            return

        def decided(reply: Any) -> None:
            respond(self._reply({_key(of): Refusal(of.error_code, of.error_message) for of in reply.responses}))

        def failed(error: ErrorCode) -> None:
            respond(self._reply({_key(resource): Refusal(error) for resource in self._rest.resources}))

        controller.ask(self._rest, context.api_version, Caller.of(context.connection), decided, failed)

    def _pairs(self) -> list[tuple[Any, Refusal | None]]:
        return list(zip(self._resources, self._verdicts, strict=True))

    def _reply(self, decided: Mapping[Key, Refusal]) -> Any:
        reply = self._response()
        for resource, verdict in self._pairs():
            outcome = verdict if verdict is not None else decided[_key(resource)]
            reply.responses.append(
                self._response.AlterConfigsResourceResponse(
                    error_code=outcome.code,
                    error_message=outcome.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        return reply


def _key(resource: Any) -> Key:
    return resource.resource_type, resource.resource_name


def _check_broker(node_id: int, resource: Resource, changes: Changes, problem: str | None) -> Refusal | None:
    """No name is all brokers, which any of them may speak for. A key store belongs to one listener of one broker.

    `problem` is why this node could not use what it is given.
    """
    name = resource.resource_name
    if resource.resource_type != ResourceType.BROKER:
        return None
    if name and name != str(node_id):
        return Refusal(ErrorCode.INVALID_REQUEST, f"This is broker {node_id}; settings of {name!r} go there.")
    for_listeners = [key for key, text in changes.items() if key.startswith("ssl.") and text is not None]
    if for_listeners:
        keys = ", ".join(for_listeners)
        return Refusal(ErrorCode.INVALID_REQUEST, f"To be given to a listener, as listener.name.<name>.<key>: {keys}")
    return Refusal(ErrorCode.INVALID_REQUEST, problem) if name and problem is not None else None
