"""AlterConfigs 0-2 and IncrementalAlterConfigs 0-1: new settings for topics, brokers, groups, metrics and loggers.

Loggers are this node's own business and are set here. The rest is the controller's to check and to keep; but what is
meant for one broker must be sent to that broker (KIP-226), which is checked here, where it is known who we are. The
old API replaces all settings of a resource, the incremental one (KIP-339) changes some. Replies are in the request's
order.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ottla.broker.cluster.cluster_metadata import NodeIdentity
from ottla.machines.metadata.decisions.alter_configs import ALTERABLE, Operation
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.refusal import Refusal
from ottla.runtime.channels import Caller, ControllerChannel
from ottla.runtime.request import RequestContext, Respond
from ottla.serving.loggers import change_loggers
from ottla.serving.node_settings import NodeSettings
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

    def settle(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Refusal | None:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            return change_loggers(identity.node_id, resource, validate_only=request.validate_only)
        if resource.resource_type not in ALTERABLE:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
        return None

    alteration = _Alteration(request, IncrementalAlterConfigsResponse, changes_of, settle)
    alteration.begin(node_settings, controller, context, respond)


def handle_alter_configs(
    node_settings: NodeSettings,
    controller: ControllerChannel,
    context: RequestContext,
    request: AlterConfigsRequest,
    respond: Respond,
) -> None:
    def changes_of(resource: AlterConfigsRequest.AlterConfigsResource) -> Changes:
        return {config.name: config.value for config in resource.configs}

    alteration = _Alteration(request, AlterConfigsResponse, changes_of, lambda _: None)
    alteration.begin(node_settings, controller, context, respond)


class _Alteration:
    """A request of either API, which have the same shape: what is settled here, and what the controller is to decide.

    `changes_of` a resource are its settings as they would be; None is one that is taken away. `settle` is the outcome
    for a resource that this node decides about alone, and None for every other. `_verdicts` has what was found here
    for each resource; None is for the controller.
    """

    def __init__(
        self,
        request: Any,
        response: Any,
        changes_of: Callable[[Any], Changes],
        settle: Callable[[Any], Refusal | None],
    ) -> None:
        self._request = request
        self._resources: list[Any] = request.resources
        self._response = response
        self._changes_of = changes_of
        self._settle = settle
        self._verdicts: list[Refusal | None] = []

    def begin(
        self, node_settings: NodeSettings, controller: ControllerChannel, context: RequestContext, respond: Respond
    ) -> None:
        """Finds out first what this node could not use of its own settings, if there are any of files and keys.

        The requests of the connection that are behind this one wait meanwhile: the next may be about the same setting.
        """

        def carry_out(problem: str | None) -> None:
            self._verdicts = self._checked(node_settings.node_id, problem)
            self._carry_out(controller, context, respond)

        own = (ResourceType.BROKER, str(node_settings.node_id))
        changes = next((self._changes_of(resource) for resource in self._resources if _key(resource) == own), {})
        if not node_settings.has_to_check(changes):
            carry_out(None)
            return
        connection = context.connection
        connection.pause()
        node_settings.find_problem(changes, lambda problem: connection.resume_with(lambda: carry_out(problem)))

    def _checked(self, node_id: int, problem: str | None) -> list[Refusal | None]:
        times = Counter(map(_key, self._resources))
        twice = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        return [
            twice
            if times[_key(resource)] > 1
            else self._settle(resource) or _check_broker(node_id, resource, self._changes_of(resource), problem)
            for resource in self._resources
        ]

    def _carry_out(self, controller: ControllerChannel, context: RequestContext, respond: Respond) -> None:
        rest = type(self._request)(
            resources=[resource for resource, verdict in self._pairs() if verdict is None],
            validate_only=self._request.validate_only,
        )
        if not rest.resources:
            respond(self._reply({}))
            return

        def decided(reply: Any) -> None:
            respond(self._reply({_key(of): Refusal(of.error_code, of.error_message) for of in reply.responses}))

        def failed(error: ErrorCode) -> None:
            respond(self._reply({_key(resource): Refusal(error) for resource in rest.resources}))

        controller.ask(rest, context.api_version, Caller.of(context.connection), decided, failed)

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
