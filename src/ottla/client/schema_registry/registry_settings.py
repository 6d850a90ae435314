"""The settings of a registry's client, by the names that Confluent's clients have for them.

    SchemaRegistryClient("http://localhost:8081")
    SchemaRegistryClient(url="https://a:8081,https://b:8081", basic_auth="user:password", ssl_ca_location="ca.pem")
    SchemaRegistryClient({"schema.registry.url": …, "basic.auth.user.info": …})

Names may begin with `schema.registry.`; keywords have underscores for dots.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ottla.client.http.http_client import Origin
from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.scopes import Scope, settings
from ottla.config.values import HIDDEN, Password, Value

_PORTS: Final = {"http": 80, "https": 443}
_OWN: Final = (
    "url",
    "basic.auth.user.info",
    "basic.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.credentials.source",
    "cache.capacity",
    "cache.latest.ttl.sec",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "request.timeout.ms",
    "connect.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)
_SECRETS: Final = ("basic.auth.user.info", "bearer.auth.token", "ssl.key.password")


class RegistryClientSettings(NamedTuple):
    origins: tuple[Origin, ...]
    path: str
    """What stands before every path, without a slash at its end."""
    authorization: str | None
    cache_capacity: int
    latest_ttl_s: float
    max_retries: int
    wait_ms: float
    most_wait_ms: float
    request_ms: float
    connect_ms: float
    ssl: Mapping[str, Value] | None
    """Kafka's `ssl.` settings, where a URL is one of https."""


def read_registry_client_settings(given: Mapping[str, Any]) -> RegistryClientSettings:
    """Raises `ConfigError` with all problems."""
    named: dict[str, Any] = {}
    problems: list[Problem] = []
    table = settings(Scope.ADMIN)
    ssl: dict[str, Value] = {}
    for key, value in given.items():
        name = key.replace("_", ".").removeprefix("schema.registry.")
        if value is None:
            continue
        if name == "basic.auth":
            name = "basic.auth.user.info"
        elif name == "token":
            name = "bearer.auth.token"
        if name in _OWN:
            named[name] = value
        elif name.startswith("ssl.") and name in table:
            try:
                ssl[name] = table[name].parse(str(value))
            except ValueError as expected:
                problems.append(Problem(key, HIDDEN, str(expected)))
        else:
            problems.append(Problem(key, str(value), "a setting of a schema registry's client"))
    origins: list[Origin] = []
    paths: list[str] = []
    login = None
    for text in _urls(named.get("url")):
        try:
            origin, path, found = _read_url(text)
        except ValueError as expected:
            problems.append(Problem("url", text, str(expected)))
            continue
        origins.append(origin)
        paths.append(path)
        login = login or found
    if not origins and not problems:
        problems.append(Problem("url", None, "given: where a registry is, as http://host:port"))
    if len(set(paths)) > 1:
        problems.append(Problem("url", ", ".join(paths), "with the same path in all URLs"))
    authorization = _authorization(named, login, problems)
    numbers = {name: _number(named, name, default, problems) for name, default in _NUMBERS.items()}
    is_secure = any(origin.scheme == "https" for origin in origins)
    if problems:
        raise ConfigError(tuple(problems))
    return RegistryClientSettings(
        tuple(origins),
        paths[0],
        authorization,
        int(numbers["cache.capacity"]),
        numbers["cache.latest.ttl.sec"],
        int(numbers["max.retries"]),
        numbers["retries.wait.ms"],
        numbers["retries.max.wait.ms"],
        numbers["request.timeout.ms"],
        numbers["connect.timeout.ms"],
        _ssl_values(named, ssl) if is_secure else None,
    )


_NUMBERS: Final = {
    "cache.capacity": 1_000.0,
    "cache.latest.ttl.sec": 30.0,
    "max.retries": 3.0,
    "retries.wait.ms": 200.0,
    "retries.max.wait.ms": 5_000.0,
    "request.timeout.ms": 30_000.0,
    "connect.timeout.ms": 10_000.0,
}


def _urls(value: Any) -> list[str]:
    if value is None:
        return []
    found = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(one).strip() for one in found if str(one).strip()]


def _read_url(text: str) -> tuple[Origin, str, str | None]:
    """Where it is, the path, and `user:password` if it has them. Raises `ValueError`."""
    expected = "http://host:port or https://host:port"
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(expected)
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise ValueError(expected) from None
    login = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Origin(parts.scheme, parts.hostname, port), parts.path.rstrip("/"), login


def _authorization(named: Mapping[str, Any], login: str | None, problems: list[Problem]) -> str | None:
    user, token = named.get("basic.auth.user.info"), named.get("bearer.auth.token")
    if isinstance(user, tuple | list):
        user = ":".join(map(str, user))
    user = login if user is None else str(user.secret if isinstance(user, Password) else user)
    if token is not None and user is not None:
        problems.append(Problem("bearer.auth.token", HIDDEN, "left out where there is a name and password"))
    if token is not None:
        return f"Bearer {token.secret if isinstance(token, Password) else token}"
    if user is None:
        return None
    if ":" not in user:
        problems.append(Problem("basic.auth.user.info", HIDDEN, "user:password"))
    return "Basic " + b64encode(user.encode()).decode()


def _number(named: Mapping[str, Any], name: str, default: float, problems: list[Problem]) -> float:
    try:
        found = float(named.get(name, default))
    except (TypeError, ValueError):
        found = -1.0
    if found < 0:
        problems.append(Problem(name, str(named.get(name)), "a number, and not negative"))
    return found


def _ssl_values(named: Mapping[str, Any], ssl: dict[str, Value]) -> Values:
    """Files in PEM, as Confluent's Python client names them, are key and trust stores of that type."""
    if "ssl.ca.location" in named:
        ssl |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(named["ssl.ca.location"])}
    if "ssl.certificate.location" in named:
        with open(str(named["ssl.certificate.location"])) as file:
            chain = file.read()
        ssl |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain}
        if "ssl.key.location" in named:
            with open(str(named["ssl.key.location"])) as file:
                ssl["ssl.keystore.key"] = Password(file.read())
        if "ssl.key.password" in named:
            ssl["ssl.key.password"] = Password(str(named["ssl.key.password"]))
    return Values(ssl, settings(Scope.ADMIN))


def shown(key: str, value: Any) -> str:
    """A setting for an error or a log line."""
    return HIDDEN if key in _SECRETS else str(value)
