"""The settings of a client, from keyword arguments, a mapping or a properties file.

    Producer(bootstrap_servers="localhost:9092", linger_ms=5)
    Producer({"bootstrap.servers": "localhost:9092", "linger.ms": 5})
    Producer.from_properties("client.properties", linger_ms=5)

Names are Kafka's; a keyword has underscores for dots. A value is text, as in a file, or the Python value that it stands
for; None is as if it were not given. All that is wrong is reported at once, in a `ConfigError`. Unlike a node, a client
refuses a name that it does not know, and says which is nearest. In a file, which several clients may share, a setting
of another kind of client is only warned about.
"""

import warnings
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.parse import ConfigError, Problem, Values, Warned
from ottla.config.properties import read_properties
from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import HIDDEN, Password, Type, Value

CLIENTS = (Scope.PRODUCER, Scope.CONSUMER, Scope.ADMIN)


class SettingWarning(UserWarning):
    """A setting was accepted and will not do what its author may expect."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientSettings(Values):
    """Checked values by Kafka's name, defaults included. The readers of `Values` give them typed."""

    __slots__ = ("bootstrap", "objects", "warnings")

    def __init__(
        self, scope: Scope, given: Mapping[str, Value], objects: Mapping[str, object], warned: tuple[Warned, ...] = ()
    ) -> None:
        super().__init__(given, settings(scope))
        self.objects = objects
        """What was given as a Python object where Kafka names a class: serializers, partitioners, assignors."""
        self.warnings = warned
        self.bootstrap = _addresses(self, scope)
        """Where to find the cluster first: brokers, or controllers if an admin was given those instead."""

    def plug_in(self, key: str) -> object:
        """The object or the name that was given for a setting that is a class or a list of classes, or its default.

        None where Kafka's has no default.
        """
        if key in self.objects:
            return self.objects[key]
        return None if self._defaults[key].default is REQUIRED and key not in self.given else self[key]

    def warn(self, stacklevel: int = 3) -> None:
        """Tells the warnings in Python's way, once a setting; `stacklevel` is that of the user's line."""
        for warned in self.warnings:
            warnings.warn(str(warned), SettingWarning, stacklevel=stacklevel)


def read_settings(
    scope: Scope, given: Mapping[str, object] | None = None, keywords: Mapping[str, object] | None = None
) -> ClientSettings:
    """Checks everything against its row. Keywords win over the mapping. Raises `ConfigError` with all problems."""
    named = {**(given or {}), **{key.replace("_", "."): value for key, value in (keywords or {}).items()}}
    return _read(scope, named, shared=frozenset())


def read_settings_file(scope: Scope, content: bytes, keywords: Mapping[str, object] | None = None) -> ClientSettings:
    """The same from the content of a properties file, with keywords over it."""
    try:
        from_file = read_properties(content)
    except ValueError as wrong:
        raise ConfigError((Problem("properties file", str(wrong), "in Java's format"),)) from None
    named = {key.replace("_", "."): value for key, value in (keywords or {}).items()}
    return _read(scope, {**from_file, **named}, shared=frozenset(from_file) - frozenset(named))


def _read(scope: Scope, named: Mapping[str, object], shared: frozenset[str]) -> ClientSettings:
    table = settings(scope)
    given: dict[str, Value] = {}
    objects: dict[str, object] = {}
    problems: list[Problem] = []
    warned: list[Warned] = []
    for key, value in named.items():
        if value is None:
            continue
        row = table.get(key)
        if row is None:
            _tell_unknown(scope, key, value, key in shared, problems, warned)
            continue
        try:
            if is_object := _is_object(row, value):
                objects[key] = value
            else:
                given[key] = _value(row, value)
        except ValueError as expected:
            problems.append(Problem(key, HIDDEN if row.type is Type.PASSWORD else _shown(value), str(expected)))
            continue
        if reason := _unsupported(key, None if is_object else given[key]):
            problems.append(Problem(key, HIDDEN if row.type is Type.PASSWORD else _shown(value), reason))
        elif not row.acted_on and key not in _MISSING and given.get(key) != row.default:
            warned.append(Warned(key, "this version accepts the setting and does not act on it yet"))
    if not given.get("bootstrap.servers") and not given.get("bootstrap.controllers"):
        problems.append(Problem("bootstrap.servers", None, "given: some brokers of the cluster, as host:port"))
    if problems:
        raise ConfigError(tuple(problems))
    return ClientSettings(scope, given, objects, tuple(warned))


def _tell_unknown(
    scope: Scope, key: str, value: object, shared: bool, problems: list[Problem], warned: list[Warned]
) -> None:
    others = [other.value for other in CLIENTS if key in settings(other)]
    if others and shared:
        warned.append(Warned(key, f"a setting of the {' and the '.join(others)}; the {scope.value} has no use for it"))
        return
    if key in _OF_LIBRDKAFKA:
        problems.append(
            Problem(key, HIDDEN if "password" in key else _shown(value), _of_librdkafka(key, f"of the {scope.value}"))
        )
        return
    if others:
        hint = f"; this is one of the {' and the '.join(others)}"
        is_secret = any(settings(other)[key].type is Type.PASSWORD for other in CLIENTS if key in settings(other))
    else:
        from difflib import get_close_matches  # only those who mistype pay for it

        of = {name: scope for scope in reversed((scope, *CLIENTS)) for name in settings(scope)}
        own = get_close_matches(key, settings(scope), n=1, cutoff=0.5)
        nearest = own or get_close_matches(key, of, n=1, cutoff=0.7)
        whose = "" if own or not nearest else f", a setting of the {of[nearest[0]].value}"
        hint = f"; did you mean {nearest[0]}{whose}?" if nearest else ""
        is_secret = bool(nearest) and settings(of[nearest[0]])[nearest[0]].type is Type.PASSWORD
    shown = HIDDEN if is_secret else _shown(value)
    problems.append(Problem(key, shown, f"the name of a setting of the {scope.value}{hint}"))


_OF_LIBRDKAFKA: Final = {
    "auto.commit.enable": "enable.auto.commit",
    "batch.num.messages": "batch.size, in bytes",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.kbytes": "buffer.memory, in bytes",
    "queue.buffering.max.messages": "buffer.memory, in bytes",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.password": "sasl.jaas.config, with a login module's username and password",
    "sasl.username": "sasl.jaas.config, with a login module's username and password",
    "socket.timeout.ms": "request.timeout.ms",
    "ssl.ca.location": "ssl.truststore.location, with ssl.truststore.type=PEM",
    "ssl.certificate.location": "ssl.keystore.location, with ssl.keystore.type=PEM",
    "ssl.key.location": "ssl.keystore.location, with ssl.keystore.type=PEM: a file with both",
}
"""Names of settings that users of confluent-kafka bring along, and ours: docs/clients/coming-from.md has more."""


def _of_librdkafka(key: str, whose: str) -> str:
    return f"the name of a setting {whose}; librdkafka has it, and here it is {_OF_LIBRDKAFKA[key]}"


_MISSING: Final = {
    "transaction.two.phase.commit.enable": "false: producers have no two-phase commit (KIP-939)",
    "config.providers": "left out: references to other files are not replaced",
    "share.acknowledgement.mode": "left out: there is no consumer for share groups",
    "share.acquire.mode": "left out: there is no consumer for share groups",
}
"""What a setting must be that can be given only a value that asks for nothing."""

_ONLY: Final[Mapping[str, tuple[Value, str]]] = {
    "client.dns.lookup": (
        "use_all_dns_ips",
        "use_all_dns_ips: all addresses of a name are tried, and names are not made canonical",
    ),
    "metric.reporters": (
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "left out: classes of Java's cannot be loaded; `metrics()` tells what is measured",
    ),
}
"""Settings that can be given one value only, which asks for what is done anyway."""

_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_JAVA_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "ssl.engine.factory.class": frozenset(),
    "sasl.client.callback.handler.class": frozenset(),
    "sasl.login.class": frozenset(),
    "sasl.login.callback.handler.class": frozenset(
        (_OAUTH + "OAuthBearerLoginCallbackHandler", _OAUTH + "secured.OAuthBearerLoginCallbackHandler")
    ),
    "sasl.oauthbearer.jwt.retriever.class": frozenset(
        _OAUTH + name
        for name in (
            "DefaultJwtRetriever",
            "ClientCredentialsJwtRetriever",
            "JwtBearerJwtRetriever",
            "FileJwtRetriever",
        )
    ),
}
"""Settings that name a class of Java's, and the classes whose work is done here."""


def _unsupported(key: str, value: Value) -> str | None:
    """Why a setting is refused that asks for what clients do not have: half a security is none, nor half a promise."""
    if key == "interceptor.classes":
        return "a list of objects, as ottla.ProducerInterceptor or ottla.ConsumerInterceptor is" if value else None
    if key in _MISSING:
        return _MISSING[key] if value or value is None else None
    if key in _ONLY and value not in (_ONLY[key][0], ()):
        return _ONLY[key][1]
    return java_class_problem(key, value)


def java_class_problem(key: str, value: Value) -> str | None:
    """What a setting must be that names a class of Java's whose work is not done here; None if all is well."""
    if key not in _JAVA_CLASSES or value in _JAVA_CLASSES[key]:
        return None
    known = " or ".join(sorted(_JAVA_CLASSES[key]))
    return f"{known}, or left out" if known else "left out: classes of Java's cannot be loaded"


def _is_object(row: Setting, value: object) -> bool:
    if row.type is Type.CLASS:
        return not isinstance(value, str)
    # Assignors and interceptors are classes in a list.
    return row.type is Type.LIST and not isinstance(value, str) and not _is_texts(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(item, str) for item in value)


def _value(row: Setting, value: object) -> Value:
    """A Python value as its row's type. Raises `ValueError` that completes "it must be …"."""
    if isinstance(value, str):
        return row.parse(value)
    checked: Value
    match row.type, value:
        case Type.BOOLEAN, bool():
            checked = value
        case Type.DOUBLE, int() | float() if not isinstance(value, bool):
            checked = float(value)
        case Type.LIST, list() | tuple() | set() | frozenset():
            checked = tuple(sorted(value) if isinstance(value, set | frozenset) else value)
        case Type.PASSWORD, Password():
            checked = value
        # Text has one form only, so what is written as a number is read as text: `acks=1`.
        case Type.SHORT | Type.INT | Type.LONG | Type.STRING, int() if not isinstance(value, bool):
            return row.parse(str(value))
        case _:
            raise ValueError(str(row.bound) if row.bound is not None else f"a {row.type.value}")
    row.check(checked)
    return checked


def _shown(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _addresses(values: Values, scope: Scope) -> tuple[Address, ...]:
    key = "bootstrap.controllers" if scope is Scope.ADMIN and values.given.get("bootstrap.controllers") else None
    return tuple(_address(key or "bootstrap.servers", text) for text in values.list(key or "bootstrap.servers"))


def _address(key: str, text: str) -> Address:
    host, _, port = text.rpartition(":")
    # A listener's name may stand before it, as in advertised.listeners; an IPv6 address is in brackets.
    host = host.rpartition("://")[2].removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ConfigError((Problem(key, text, "host:port, or several of them with commas between"),))
    return Address(host, int(port))
