"""IncrementalAlterConfigs 0-1, as a controller takes it: settings for any broker, and not for itself alone.

Loggers are this node's own business, and changed here. Each resource has one answer, also if it is named twice.
"""

from collections import Counter

from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.metadata.decisions.alter_configs import ALTERABLE, LONGEST_NODE_ID
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.runtime.channels import Failed, Then
from ottla.serving.loggers import change_loggers
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


def incremental_alter_configs(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    request: IncrementalAlterConfigsRequest = asked.request
    settled, others = [], []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    for key, resource in resources.items():
        if times[key] > 1:
            settled.append(_altered(resource, ErrorCode.INVALID_REQUEST, "Duplicate resource."))
        elif resource.resource_type == ResourceType.BROKER_LOGGER:
            outcome = change_loggers(server.node_id, resource, validate_only=request.validate_only)
            settled.append(_altered(resource, *outcome))
        elif resource.resource_type not in ALTERABLE:
            unknown = f"Unknown resource type {resource.resource_type}."
            settled.append(_altered(resource, ErrorCode.UNSUPPORTED_VERSION, unknown))
        elif _is_of_unknown_node(server, resource):
            unknown = f"No node with id {resource.resource_name} found."
            settled.append(_altered(resource, ErrorCode.BROKER_ID_NOT_REGISTERED, unknown))
        else:
            others.append(resource)
    rest = IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)

    def decided(reply: IncrementalAlterConfigsResponse) -> None:
        reply.responses += settled
        then(reply)

    def cannot_decide(error: ErrorCode) -> None:
        if settled:
            refused = [_altered(resource, error, None) for resource in others]
            then(IncrementalAlterConfigsResponse(responses=refused + settled))
        else:
            failed(error)

    server.log.submit(lambda controller, now_ms: controller.decide(rest, asked.version, now_ms), decided, cannot_decide)


def _is_of_unknown_node(server: ControllerServer, resource: _Resource) -> bool:
    name = resource.resource_name
    if resource.resource_type != ResourceType.BROKER or not name.isdecimal() or len(name) > LONGEST_NODE_ID:
        return False
    return int(name) not in server.image.brokers.by_id and int(name) != server.node_id


def _altered(
    resource: _Resource, error: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    code, words = error_with_message(error, message)
    return IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=code,
        error_message=words,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
