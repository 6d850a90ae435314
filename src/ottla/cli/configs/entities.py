"""Whose settings kafka-configs is asked about. The empty name stands for the defaults of a type."""

from typing import Final, NamedTuple

from ottla.cli.failures import Terse
from ottla.cli.options.checks import UsageError, refuse
from ottla.cli.options.reading import Given

TYPES: Final = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
_FLAGS: Final = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
_DEFAULT_FLAGS: Final = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
DEFAULT: Final = ""
_WITH_DEFAULTS: Final = ("clients", "users", "brokers", "ips")
_NEVER_DEFAULT: Final = ("topics", "broker-loggers", "client-metrics", "groups")


class Entity(NamedTuple):
    type: str
    name: str | None
    """None for all of the type."""

    @property
    def singular(self) -> str:
        return self.type[:-1]


def entities_of(given: Given) -> list[Entity]:
    """In the order in which they were named; names go with types by their order."""
    types = [*given.all("entity-type")]
    names = [
        argument if name == "entity-name" and argument is not None else DEFAULT
        for name, argument in given.in_order
        if name in ("entity-name", "entity-default")
    ]
    for flag, kind in _FLAGS.items():
        if flag in given:
            types.append(kind)
            names.append(given.text(flag))
    for flag, kind in _DEFAULT_FLAGS.items():
        if flag in given:
            types.append(kind)
            names.append(DEFAULT)
    padded: list[str | None] = [*names, *[None] * len(types)]
    return [Entity(kind, name) for kind, name in zip(types, padded, strict=False)]


def check(given: Given) -> tuple[str, list[Entity]]:
    """The action and whose settings. Raises `UsageError` or `Terse` for what does not go together."""
    if ("describe" in given) == ("alter" in given):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    refuse(given, "describe", ("add-config", "delete-config", "add-config-file"))
    refuse(given, "alter", ("all", "json"))
    entities = entities_of(given)
    _check_types(given, entities)
    _check_connection(given)
    for entity in entities:
        _check_name(entity)
    if "describe" in given:
        for entity in entities:
            if entity.name == DEFAULT and entity.type in _NEVER_DEFAULT:
                raise Terse(f"--entity-default must not be specified with --describe of {entity.type}")
        return "describe", entities
    _check_alter(given, entities)
    return "alter", entities


def _check_types(given: Given, entities: list[Entity]) -> None:
    types = [entity.type for entity in entities]
    uses_flags = any(flag in given for flag in (*_FLAGS, *_DEFAULT_FLAGS))
    if uses_flags and any(name in given for name in ("entity-type", "entity-name", "entity-default")):
        raise Terse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if len(set(types)) != len(types):
        twice = ",".join(sorted({kind for kind in types if types.count(kind) > 1}))
        raise Terse(f"Duplicate entity type(s) specified: {twice}")
    for kind in types:
        if kind not in TYPES:
            raise Terse(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise Terse("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise Terse("Only 'users' and 'clients' entity types may be specified together")


def _check_connection(given: Given) -> None:
    if "bootstrap-server" in given and "bootstrap-controller" in given:
        raise Terse("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if "bootstrap-server" not in given and "bootstrap-controller" not in given:
        raise Terse("Either --bootstrap-server or --bootstrap-controller must be specified.")


def _check_name(entity: Entity) -> None:
    if not entity.name:
        return
    if entity.type in ("brokers", "broker-loggers"):
        try:
            int(entity.name)
        except ValueError:
            raise Terse(
                f"The entity name for {entity.type} must be a valid integer broker id, but it is: {entity.name}"
            ) from None
    if entity.type == "ips":
        import socket

        try:
            socket.getaddrinfo(entity.name, None)
        except OSError:
            raise Terse(
                f"The entity name for {entity.type} must be a valid IP or resolvable host, but it is: {entity.name}"
            ) from None


def _check_alter(given: Given, entities: list[Entity]) -> None:
    for entity in entities:
        if entity.name is None and entity.type in _WITH_DEFAULTS:
            raise Terse(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
        if not entity.name and entity.type in _NEVER_DEFAULT:
            raise Terse(f"An entity name must be specified with --alter of {entity.type}")
    additions = [name for name in ("add-config", "add-config-file") if name in given]
    if len(additions) > 1:
        raise Terse("Only one of --add-config or --add-config-file must be specified")
    if not additions and "delete-config" not in given:
        raise Terse(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
