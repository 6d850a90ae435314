"""Changes of log levels (KIP-412): all of a request or none, at once, until the node stops."""

from ottla.broker.admin.settings import loggers
from ottla.machines.metadata.decisions.alter_configs import Operation
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Change = IncrementalAlterConfigsRequest.AlterableConfig


def change_loggers(node_id: int, resource: Resource, *, validate_only: bool) -> Refusal:
    """The outcome; its code is NONE where the levels were changed, or could be."""
    if resource.resource_name != str(node_id):
        return Refusal(ErrorCode.INVALID_REQUEST, f"This is node {node_id}; it has no loggers of another.")
    if len({change.name for change in resource.configs}) < len(resource.configs):
        return Refusal(ErrorCode.INVALID_REQUEST, "A logger appears more than once.")
    for change in resource.configs:
        refusal = _check(change)
        if refusal is not None:
            return refusal
    if not validate_only:
        for change in resource.configs:
            if change.config_operation == Operation.SET:
                loggers.set_level(change.name, str(change.value))
            else:
                loggers.unset_level(change.name)
    return Refusal(ErrorCode.NONE)


def _check(change: Change) -> Refusal | None:
    if change.value is None and change.config_operation != Operation.DELETE:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    if not loggers.exists(change.name):
        return Refusal(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.config_operation == Operation.SET:
        if change.value in loggers.LEVELS:
            return None
        return Refusal(
            ErrorCode.INVALID_CONFIG, f"{change.value} is no log level; there are {', '.join(loggers.LEVELS)}."
        )
    if change.config_operation == Operation.DELETE:
        if change.name != loggers.ROOT:
            return None
        return Refusal(ErrorCode.INVALID_REQUEST, "The root logger cannot be without a level.")
    return Refusal(ErrorCode.INVALID_REQUEST, "A log level is set or removed; there is nothing else to do with it.")
