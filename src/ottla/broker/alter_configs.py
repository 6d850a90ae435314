"""AlterConfigs 0-2 and IncrementalAlterConfigs 0-1: new settings for topics, brokers, groups, metrics and loggers.

Loggers are this node's own business and are set here. The rest is the controller's, but what is given to a broker is
checked here first: only the broker knows what it can take while it runs (KIP-226). The old API replaces all settings
of a resource, the incremental one (KIP-339) sets, removes, appends and subtracts. Replies are in the request's order.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ottla.broker.context import Broker
from ottla.broker.dynamic_changes import DELETE, changed_settings, check_dynamic_settings
from ottla.broker.logger_changes import change_loggers
from ottla.machines.metadata.configs import ResourceType
from ottla.machines.metadata.refusal import Refusal
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_OF_THE_CONTROLLER = frozenset({ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP})

Resource: TypeAlias = AlterConfigsRequest.AlterConfigsResource | IncrementalAlterConfigsRequest.AlterConfigsResource
Key: TypeAlias = tuple[int, str]


def handle_incremental_alter_configs(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest, respond: Respond
) -> None:
    def check(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Refusal | None:
        null = [
            change.name for change in resource.configs if change.value is None and change.config_operation != DELETE
        ]
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            return _malformed(resource, null) or change_loggers(
                broker.node_id, resource, validate_only=request.validate_only
            )
        before = broker.image.configs.of(ResourceType.BROKER, resource.resource_name)
        return _check(broker, resource, null, lambda: changed_settings(before, resource.configs))

    _Alteration(request, IncrementalAlterConfigsResponse, check).carry_out(
        broker, lambda controller, rest, now_ms: controller.incremental_alter_configs(rest, now_ms), respond
    )


def handle_alter_configs(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest, respond: Respond
) -> None:
    def check(resource: AlterConfigsRequest.AlterConfigsResource) -> Refusal | None:
        null = [config.name for config in resource.configs if config.value is None]
        texts = {config.name: config.value or "" for config in resource.configs}
        return _check(broker, resource, null, lambda: texts)

    _Alteration(request, AlterConfigsResponse, check).carry_out(
        broker, lambda controller, rest, now_ms: controller.alter_configs(rest, now_ms), respond
    )


class _Alteration:
    """A request of either API, which have the same shape: what is settled here, and what the controller is to decide.

    `verdicts` has what `check` says of each resource; None is for the controller.
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

    def carry_out(self, broker: Broker, decide: Callable[[Any, Any, int], Any], respond: Respond) -> None:
        if not self._rest.resources:
            respond(self._reply({}))
            return

        def decided(reply: Any) -> None:
            respond(self._reply({_key(of): Refusal(of.error_code, of.error_message) for of in reply.responses}))

        broker.controller.submit(
            lambda controller, now_ms: decide(controller, self._rest, now_ms),
            decided,
            lambda error: respond(self._reply({_key(resource): Refusal(error) for resource in self._rest.resources})),
        )

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


def _check(
    broker: Broker, resource: Resource, null: list[str], settings_after: Callable[[], dict[str, str] | Refusal]
) -> Refusal | None:
    """Why a change goes no further than here; `settings_after` are what a broker would have."""
    problem = _malformed(resource, null)
    if problem is not None or resource.resource_type in _OF_THE_CONTROLLER:
        return problem
    if resource.resource_type != ResourceType.BROKER:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    problem = _not_this_broker(broker, resource.resource_name)
    if problem is not None:
        return problem
    texts = settings_after()
    return texts if isinstance(texts, Refusal) else check_dynamic_settings(resource.resource_name, texts)


def _malformed(resource: Resource, null: list[str]) -> Refusal | None:
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        return Refusal(ErrorCode.INVALID_REQUEST, "A setting appears more than once.")
    if null:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")
    return None


def _not_this_broker(broker: Broker, name: str) -> Refusal | None:
    """No name is all brokers, which any of them may speak for."""
    if not name or name == str(broker.node_id):
        return None
    return Refusal(ErrorCode.INVALID_REQUEST, f"This is broker {broker.node_id}; it cannot be asked for {name!r}.")
