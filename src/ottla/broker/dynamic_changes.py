"""What a broker can be given while it runs (KIP-226): the rules for a change, before it goes to the controller.

A setting must be dynamic; some are dynamic for one broker only, as no two nodes share a key store; those of TLS also
for one listener only. Keys that nobody knows are let through, for they may belong to a plug-in.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.broker.node_settings import broker_row
from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Dynamic
from ottla.config.values import HIDDEN, Type, value_text
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import IncrementalAlterConfigsRequest

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

Change = IncrementalAlterConfigsRequest.AlterableConfig


def changed_settings(before: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str] | Refusal:
    """The settings of a broker, or of all, as they would be; lists grow and shrink by their items."""
    texts = dict(before)
    for change in changes:
        name, operation, text = change.name, change.config_operation, change.value or ""
        if operation == SET:
            texts[name] = text
        elif operation == DELETE:
            texts.pop(name, None)
        elif operation in (APPEND, SUBTRACT):
            row = broker_row(name)
            if row is None or row.type is not Type.LIST:
                verb = "append" if operation == APPEND else "subtract"
                return Refusal(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}")
            default = "" if row.default is REQUIRED else value_text(row.default)
            items = [item for item in texts.get(name, default).split(",") if item]
            wanted = [item for item in text.split(",") if item]
            if operation == APPEND:
                items += [item for item in wanted if item not in items]
            else:
                items = [item for item in items if item not in wanted]
            texts[name] = ",".join(items)
        else:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return texts


def check_dynamic_settings(broker_name: str, texts: Mapping[str, str]) -> Refusal | None:
    """Whether one broker, or all if there is no name, may be given these."""
    table = settings(Scope.BROKER)
    known = [table[name] for name in texts if name in table]
    read_only = [row.name for row in known if row.dynamic is Dynamic.READ_ONLY]
    if read_only:
        return _invalid(f"Not to be changed while a broker runs: {', '.join(read_only)}")
    for_listeners = [row.name for row in known if row.name.startswith("ssl.")]
    if for_listeners:
        return _invalid(f"To be changed for one listener at a time, as listener.name.<name>.<key>: {for_listeners}")
    per_broker = [row.name for row in known if row.dynamic is Dynamic.PER_BROKER]
    if per_broker and not broker_name:
        return _invalid(f"To be changed for one broker at a time: {', '.join(per_broker)}")
    return _check_values(texts)


def _check_values(texts: Mapping[str, str]) -> Refusal | None:
    for name, text in texts.items():
        row = broker_row(name)
        if row is None:
            continue
        try:
            row.parse(text)
        except ValueError as expected:
            shown = HIDDEN if row.type is Type.PASSWORD else text
            return _invalid(f"Invalid value {shown} for configuration {name}: it must be {expected}")
    return None


def _invalid(message: str) -> Refusal:
    """Kafka's code for this: the settings are well-formed, and cannot be applied."""
    return Refusal(ErrorCode.INVALID_REQUEST, message)
