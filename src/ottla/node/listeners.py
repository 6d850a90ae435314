"""Where a node listens, and what it tells others to connect to (`listeners`, `advertised.listeners`)."""

from typing import NamedTuple

from ottla.base.ports import HostNames
from ottla.config.parse import ConfigError, Problem, Values

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TLS_PROTOCOLS = ("SSL", "SASL_SSL")
NO_ADDRESS = "0.0.0.0"
METRICS = "METRICS"
"""The listener of the metrics page, in `listener.name.metrics.ssl.…`."""
EVERY_INTERFACE = (NO_ADDRESS, "::")


class Listener(NamedTuple):
    """One entry of `listeners`. An empty host is every interface; port 0 is a free one."""

    name: str
    host: str
    port: int
    protocol: str
    for_controllers: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.is_ipv6 else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def bind_host(self) -> str:
        return self.host or "0.0.0.0"


class MetricsListener(NamedTuple):
    """`ottla.metrics.listener`, read."""

    host: str
    port: int
    has_tls: bool = False

    def url(self, port: int) -> str:
        """Of the page; `port` is the one that it got."""
        host = "127.0.0.1" if self.host == NO_ADDRESS else f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.has_tls else 'http'}://{host}:{port}/metrics"


class Endpoint(NamedTuple):
    """What clients of a listener are told to connect to."""

    listener: str
    host: str
    port: int
    protocol: str


def protocol_of(values: Values, name: str) -> str:
    """The security protocol of a listener, of this node or another. Raises `ConfigError` if nothing says it."""
    protocols = _protocol_map(values)
    protocol = protocols.get(name) or (name if name in SECURITY_PROTOCOLS else None)
    if protocol is None and name in values.list("controller.listener.names"):
        protocol = "PLAINTEXT"
    if protocol is None:
        raise _wrong("listener.security.protocol.map", ",".join(protocols), f"complete: it has no {name}")
    return protocol


def parse_listeners(values: Values) -> list[Listener]:
    """The listeners that the settings ask for. Raises `ConfigError` with the setting that is wrong."""
    controllers = set(values.list("controller.listener.names"))
    listeners: list[Listener] = []
    for text in values.list("listeners"):
        name, host, port = _parse("listeners", text)
        protocol = protocol_of(values, name)
        listeners.append(Listener(name, host, port, protocol, name in controllers))
    names = [listener.name for listener in listeners]
    if len(set(names)) < len(names):
        raise _wrong("listeners", ",".join(map(str, listeners)), "listeners with names of their own")
    # The two families of addresses have ports of their own.
    ports = [(listener.port, listener.is_ipv6) for listener in listeners if listener.port]
    if len(set(ports)) < len(ports):
        raise _wrong("listeners", ",".join(map(str, listeners)), "listeners with ports of their own")
    return listeners


def parse_metrics_listener(values: Values, listeners: list[Listener]) -> MetricsListener | None:
    """None where there is none. Raises `ConfigError`."""
    text = values.text("ottla.metrics.listener").strip()
    if not text:
        return None
    scheme, separator, rest = text.rpartition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme not in ("", "http", "https") or (separator and not scheme) or not port.isdecimal() or int(port) > 65535:
        raise _wrong("ottla.metrics.listener", text, "PORT, HOST:PORT, http://HOST:PORT or https://HOST:PORT")
    if scheme == "https" and any(one.name == METRICS for one in listeners):
        raise _wrong(
            "listeners", METRICS, f"without a listener {METRICS}: settings of that name are the metrics page's"
        )
    return MetricsListener(host.strip("[]") or "127.0.0.1", int(port), scheme == "https")


def advertised(values: Values, bound: list[tuple[Listener, tuple[str, int]]], host_names: HostNames) -> list[Endpoint]:
    """What to tell clients, for listeners that are bound to these addresses."""
    given = given_addresses(values, [listener for listener, _ in bound])
    return [_advertised(listener, address, given.get(listener.name), host_names) for listener, address in bound]


def given_addresses(values: Values, listeners: list[Listener]) -> dict[str, tuple[str, int]]:
    """`advertised.listeners` by name. An address that stands for every interface leads nobody here."""
    names = {listener.name for listener in listeners}
    given = {}
    for text in values.list("advertised.listeners") if values["advertised.listeners"] else ():
        name, host, port = _parse("advertised.listeners", text)
        if name not in names:
            raise _wrong("advertised.listeners", text, f"for one of the listeners {', '.join(sorted(names))}")
        if host in EVERY_INTERFACE:
            raise _wrong("advertised.listeners", text, "an address that others can connect to")
        given[name] = host, port
    return given


def _advertised(
    listener: Listener, bound: tuple[str, int], given: tuple[str, int] | None, host_names: HostNames
) -> Endpoint:
    host, port = given or (listener.host, listener.port)
    if not host or host in EVERY_INTERFACE:
        host = host_names.own_name()
    return Endpoint(listener.name, host, port or bound[1], listener.protocol)


def _protocol_map(values: Values) -> dict[str, str]:
    pairs = {}
    for entry in filter(None, values.text("listener.security.protocol.map").split(",")):
        name, colon, protocol = entry.strip().partition(":")
        if not colon or protocol not in SECURITY_PROTOCOLS:
            raise _wrong("listener.security.protocol.map", entry, f"NAME:PROTOCOL, of {', '.join(SECURITY_PROTOCOLS)}")
        pairs[name.upper()] = protocol
    return pairs


def _parse(key: str, text: str) -> tuple[str, str, int]:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and port.isdecimal() and int(port) < 65536):
        raise _wrong(key, text, "NAME://HOST:PORT")
    return name.upper(), host.strip("[]"), int(port)


def _wrong(key: str, text: str, bound: str) -> ConfigError:
    return ConfigError((Problem(key, text, bound),))
