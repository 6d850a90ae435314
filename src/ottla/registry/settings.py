"""The registry's settings, from properties with Confluent's names.

What follows `kafkastore.` and is no setting of the registry's own is one of the client that it reads and writes the
topic with: `kafkastore.security.protocol=SASL_SSL` is its `security.protocol`. All that is wrong is reported at once.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ottla.client.settings import ClientSettings, read_settings
from ottla.config.parse import ConfigError, Problem, Values, Warned, parse
from ottla.config.scopes import Scope, settings
from ottla.registry.api import ApiSettings
from ottla.registry.driver import DriverSettings
from ottla.registry.election import ElectionSettings
from ottla.registry.log_writer import WriterSettings
from ottla.runtime.http.http_server import HttpLimits
from ottla.schemas.levels import Level

_STORE: Final = "kafkastore."
_FETCH_BYTES: Final = 16 << 20
_REQUEST_MS: Final = 5_000
_SCHEMES: Final = ("http", "https")


class Listener(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


class RegistrySettings(NamedTuple):
    values: Values
    client: Mapping[str, object]
    """What `kafkastore.` said for the client."""
    listeners: tuple[Listener, ...]
    warnings: tuple[Warned, ...]

    @property
    def api(self) -> ApiSettings:
        values = self.values
        return ApiSettings(
            validates_fields=values.flag("schema.validate.fields"),
            validates_new_schemas=values.flag("schema.validate.new.schemas"),
            may_change_modes=values.flag("mode.mutability"),
            rejects_empty_subjects=values.flag("schema.reject.empty.subject"),
            schema_limit=values.integer("schema.search.default.limit"),
            most_schemas=values.integer("schema.search.max.limit"),
        )

    @property
    def driver(self) -> DriverSettings:
        values = self.values
        group_id = values.text("schema.registry.group.id")
        return DriverSettings(
            WriterSettings(values.text("kafkastore.topic"), group_id, _REQUEST_MS),
            ElectionSettings(
                group_id,
                values.integer("kafkagroup.session.timeout.ms"),
                values.integer("kafkagroup.rebalance.timeout.ms"),
                values.integer("kafkagroup.heartbeat.interval.ms"),
            ),
            values.integer("kafkastore.timeout.ms"),
            self.default_level,
        )

    @property
    def default_level(self) -> str:
        values = self.values
        return (values.optional_text("avro.compatibility.level") or values.text("schema.compatibility.level")).upper()

    @property
    def is_eligible(self) -> bool:
        older = self.values["master.eligibility"]
        return self.values.flag("leader.eligibility") if older is None else bool(older)

    @property
    def http(self) -> HttpLimits:
        return HttpLimits(
            body_bytes=self.values.integer("size.limit.filter.max.request.body.size"),
            connections=self.values.integer("ottla.registry.max.connections"),
        )

    def client_settings(self, scope: Scope) -> ClientSettings:
        """Of the client that reads the topic, or of the one that writes and elects. Raises `ConfigError`."""
        table = settings(scope)
        given = {name: value for name, value in self.client.items() if name in table}
        servers = self.values.list("kafkastore.bootstrap.servers")
        fixed: dict[str, object] = {"bootstrap.servers": list(servers)}
        if scope is Scope.CONSUMER:
            fixed |= {
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",
                "max.partition.fetch.bytes": _FETCH_BYTES,
                "allow.auto.create.topics": False,
            }
            given.pop("group.id", None)
        given.setdefault("client.id", "ottla-registry")
        return read_settings(scope, {**given, **fixed})


def read_registry_settings(properties: Mapping[str, str]) -> RegistrySettings:
    """Raises `ConfigError` with all problems."""
    table = settings(Scope.REGISTRY)
    own: dict[str, str] = {}
    client: dict[str, object] = {}
    for key, text in properties.items():
        name = key.removeprefix(_STORE)
        if key not in table and name != key and any(name in settings(scope) for scope in _CLIENTS):
            client[name] = text
        else:
            own[key] = text
    problems: list[Problem] = []
    values, warnings = parse(Scope.REGISTRY, own)
    listeners: list[Listener] = []
    for text in values.list("listeners"):
        try:
            listeners.append(_listener(text))
        except ValueError as expected:
            problems.append(Problem("listeners", text, str(expected)))
    read = RegistrySettings(values, client, tuple(listeners), warnings)
    if read.default_level not in Level.__members__:
        problems.append(Problem("avro.compatibility.level", read.default_level, "a compatibility level"))
    if not problems and not any(one.scheme == values.text("inter.instance.protocol") for one in listeners):
        problems.append(
            Problem("inter.instance.protocol", values.text("inter.instance.protocol"), "the protocol of a listener")
        )
    try:
        read.client_settings(Scope.CONSUMER)
        read.client_settings(Scope.ADMIN)
    except ConfigError as error:
        problems += (problem._replace(key=_STORE + problem.key) for problem in error.problems)
    if problems:
        raise ConfigError(tuple(problems))
    return read


_CLIENTS: Final = (Scope.CONSUMER, Scope.PRODUCER, Scope.ADMIN)


def _listener(text: str) -> Listener:
    expected = "http://host:port or https://host:port"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in _SCHEMES or port is None or parts.path not in ("", "/"):
        raise ValueError(expected)
    return Listener(parts.scheme, parts.hostname or "0.0.0.0", port)
