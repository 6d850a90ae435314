"""The limits on connections, from the settings as they are now."""

import logging

from ottla.base.ports import HostNames
from ottla.config.listener_values import listener_key
from ottla.config.parse import Values
from ottla.node.listeners import Listener
from ottla.runtime.admission import ConnectionLimits
from ottla.runtime.server import Limits

_log = logging.getLogger(__name__)

_MAX_CONNECTIONS = "max.connections"
_MAX_RATE = "max.connection.creation.rate"
_OVERRIDES = "max.connections.per.ip.overrides"


def connection_limits(values: Values, listeners: list[Listener], host_names: HostNames) -> ConnectionLimits:
    return ConnectionLimits(
        max_connections=values.integer(_MAX_CONNECTIONS),
        max_per_listener=_of_listeners(values, listeners, _MAX_CONNECTIONS),
        max_per_ip=values.integer("max.connections.per.ip"),
        max_of_ip=_overrides(values.text(_OVERRIDES), host_names),
        max_rate=values.integer(_MAX_RATE),
        max_rate_of_listener=_of_listeners(values, listeners, _MAX_RATE),
    )


def server_limits(values: Values) -> Limits:
    """What holds for every connection, as long as the node runs."""
    return Limits(
        max_request_bytes=values.integer("socket.request.max.bytes"),
        max_idle_ms=values.integer("connections.max.idle.ms"),
        max_queued_bytes=values.integer("queued.max.request.bytes"),
        send_buffer_bytes=values.integer("socket.send.buffer.bytes"),
        receive_buffer_bytes=values.integer("socket.receive.buffer.bytes"),
        listen_backlog=values.integer("socket.listen.backlog.size"),
    )


def protected_listeners(listeners: list[Listener], inter_broker_listener: str) -> frozenset[str]:
    """Those that clients cannot fill up: the brokers' own, if clients have another, and the controllers'."""
    of_brokers = [listener for listener in listeners if not listener.for_controllers]
    protected = {listener.name for listener in listeners if listener.for_controllers}
    return frozenset(protected | {inter_broker_listener} if len(of_brokers) > 1 else protected)


def _of_listeners(values: Values, listeners: list[Listener], key: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for listener in listeners:
        limit = values.given.get(listener_key(listener.name, key))
        if isinstance(limit, int):
            found[listener.name] = limit
    return found


def _overrides(text: str, host_names: HostNames) -> dict[str, int]:
    """`host:number` pairs, by address. One that cannot be read or found is named, and passed over."""
    found: dict[str, int] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        host, _, number = pair.rpartition(":")
        try:
            found[host_names.addresses_of(host.strip(" []"))[0]] = int(number)
        except (OSError, ValueError) as problem:
            _log.warning("%s: %r is ignored: %s", _OVERRIDES, pair, problem)
    return found
