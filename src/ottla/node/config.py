"""What a node is told to be: from properties to values that are checked against each other."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.parse import ConfigError, Problem, Values, Warned, parse
from ottla.config.scopes import Scope
from ottla.machines.metadata.settings.effective_settings import GROUP_LIMITS
from ottla.node.authorization import check_authorizer
from ottla.node.listeners import (
    NO_ADDRESS,
    Listener,
    MetricsListener,
    given_addresses,
    parse_listeners,
    parse_metrics_listener,
)

# Whether a node's settings of groups lie within the limits that the same node sets: else Kafka does not start.

_KINDS = ("consumer", "share", "streams")


def check_group_limits(values: Values) -> None:
    """Raises `ConfigError` that names each setting that does not fit."""
    problems = [
        problem for name, limits in GROUP_LIMITS.items() for problem in _beyond(values, f"group.{name}", *limits)
    ]
    for kind in _KINDS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if values.integer(heartbeat) >= values.integer(session):
            problems.append(_problem(values, heartbeat, "less than", session))
    if problems:
        raise ConfigError(tuple(problems))


def _beyond(values: Values, name: str, lowest: str | None, highest: str) -> list[Problem]:
    problems = []
    if lowest is not None and values.integer(highest) < values.integer(lowest):
        problems.append(_problem(values, highest, "at least", lowest))
    if lowest is not None and values.integer(name) < values.integer(lowest):
        problems.append(_problem(values, name, "at least", lowest))
    if values.integer(name) > values.integer(highest):
        problems.append(_problem(values, name, "no more than", highest))
    return problems


def _problem(values: Values, name: str, relation: str, other: str) -> Problem:
    return Problem(name, str(values.integer(name)), f"{relation} {other} ({values.integer(other)})")


class NodeConfig(NamedTuple):
    """Checked settings of one node. `values` holds all of them; the fields are those that wiring needs."""

    values: Values
    warnings: tuple[Warned, ...]
    node_id: int
    is_broker: bool
    is_controller: bool
    listeners: list[Listener]
    inter_broker_listener: str
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    metrics: MetricsListener | None = None


def read_config(properties: Mapping[str, str]) -> NodeConfig:
    """Checks every property, and what they mean together. Raises `ConfigError` that names each that is wrong."""
    values, warnings = parse(Scope.BROKER, properties)
    roles = values.list("process.roles")
    node_id = values.integer("node.id")
    if (broker_id := values.integer("broker.id")) not in (-1, node_id):
        raise _wrong("broker.id", str(broker_id), f"the same as node.id ({node_id}), or left out")
    listeners = parse_listeners(values)
    is_broker, is_controller = "broker" in roles, "controller" in roles
    _check_listeners(values, listeners, is_broker=is_broker, is_controller=is_controller)
    _check_addresses(listeners, given_addresses(values, listeners))
    check_group_limits(values)
    check_authorizer(values)
    _check_quorum(values, node_id, is_controller=is_controller)
    log_dirs = tuple(values.list("log.dirs") if values["log.dirs"] else values.list("log.dir"))
    return NodeConfig(
        values=values,
        warnings=warnings,
        node_id=node_id,
        is_broker=is_broker,
        is_controller=is_controller,
        listeners=listeners,
        inter_broker_listener=_inter_broker_listener(values, listeners),
        log_dirs=log_dirs,
        metadata_log_dir=str(values["metadata.log.dir"] or log_dirs[0]),
        metrics=parse_metrics_listener(values, listeners),
    )


def _check_listeners(values: Values, listeners: list[Listener], *, is_broker: bool, is_controller: bool) -> None:
    names = ",".join(values.list("controller.listener.names"))
    if is_controller and not any(listener.for_controllers for listener in listeners):
        raise _wrong("listeners", ",".join(map(str, listeners)), f"complete: a controller listens on {names}")
    if is_broker and all(listener.for_controllers for listener in listeners):
        raise _wrong("listeners", ",".join(map(str, listeners)), f"more than the controllers' ({names}) for a broker")


def _check_addresses(listeners: list[Listener], given: Mapping[str, tuple[str, int]]) -> None:
    """What clients are told to connect to must lead here; Kafka refuses the same address in the same words."""
    unroutable = [
        one for one in listeners if not one.for_controllers and one.host == NO_ADDRESS and one.name not in given
    ]
    if unroutable:
        line = ",".join(f"{one.name}://HOST:{one.port}" for one in listeners if not one.for_controllers)
        raise ConfigError(
            (
                Problem(
                    "advertised.listeners",
                    str(unroutable[0]),
                    "an address that others can connect to",
                    f"advertised.listeners cannot use the nonroutable meta-address {NO_ADDRESS}. Use a routable IP "
                    f"address. Add a line like advertised.listeners={line}, in which HOST is the name or address that "
                    "clients reach this machine by",
                ),
            )
        )


def _check_quorum(values: Values, node_id: int, *, is_controller: bool) -> None:
    voters = values.list("controller.quorum.voters")
    if not voters and not values.list("controller.quorum.bootstrap.servers"):
        raise _wrong("controller.quorum.voters", "", "given, or controller.quorum.bootstrap.servers")
    ids = [int(voter.partition("@")[0]) for voter in voters]
    if len(set(ids)) < len(ids):
        raise _wrong("controller.quorum.voters", ",".join(voters), "a list in which no id is twice")
    if ids and is_controller and node_id not in ids:
        raise _wrong("node.id", str(node_id), f"among controller.quorum.voters={','.join(voters)}, as a controller")
    if not is_controller and node_id in ids:
        raise _wrong("process.roles", "broker", f"with controller: node {node_id} is in controller.quorum.voters")
    if not is_controller and not values.list("controller.listener.names"):
        raise _wrong("controller.listener.names", "", "given: brokers ask the controllers there")


def _inter_broker_listener(values: Values, listeners: list[Listener]) -> str:
    for_clients = [listener.name for listener in listeners if not listener.for_controllers]
    if not for_clients:
        return ""
    name = values["inter.broker.listener.name"]
    protocol = str(values["security.inter.broker.protocol"] or "PLAINTEXT")
    wanted = str(name).upper() if name else protocol
    if wanted in for_clients:
        return wanted
    if name:
        raise _wrong("inter.broker.listener.name", wanted, f"one of the listeners {', '.join(for_clients)}")
    return for_clients[0]


def _wrong(key: str, text: str, bound: str) -> ConfigError:
    return ConfigError((Problem(key, text, bound),))
