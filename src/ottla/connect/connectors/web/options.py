"""What several connectors are told of HTTP in the same words: TLS, credentials, headers."""

import base64
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla.config.parse import ConfigError, Values
from ottla.config.setting import REQUIRED, Setting
from ottla.config.tables.client import SSL
from ottla.connect.connectors.allowed_paths import allowed_path
from ottla.connect.options import InvalidOption

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS: Final = ("host", "content-length", "transfer-encoding", "connection", "expect", "te", "upgrade", "trailer")
"""Headers that say how a message is sent; the client alone knows."""
_SSL_ROWS: Final = tuple(row for row in SSL if row.name.startswith("ssl.") and row.acted_on)


def tls_rows(prefix: str) -> tuple[Setting, ...]:
    """Kafka's settings of TLS, with a prefix. Stores are PEM unless something else is said."""
    return tuple(
        row._replace(name=prefix + row.name, default="PEM" if row.name.endswith("store.type") else row.default)
        for row in _SSL_ROWS
    )


def tls_context(options: Values, prefix: str, worker: Mapping[str, str]) -> Callable[[], ssl.SSLContext]:
    """Makes the context when it is first needed. It raises `InvalidOption`. Files are below `file.allowed.paths`."""

    def made() -> ssl.SSLContext:
        from ottla.security.tls.contexts import client_context

        values = {row.name: options[prefix + row.name] for row in _SSL_ROWS if row.default is not REQUIRED}
        for name in ("ssl.keystore.location", "ssl.truststore.location"):
            if (location := values.get(name)) is not None:
                allowed_path(str(location), worker, prefix + name)
        try:
            return client_context(values)
        except ConfigError as error:
            raise InvalidOption(f"{prefix}{error}") from None

    return made


def basic(user: str, password: str, setting: str) -> str:
    """The Authorization header of a user and a password (RFC 7617)."""
    if ":" in user:
        raise InvalidOption(f"{setting}: a user has no colon in it")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def bearer(token: str, setting: str) -> str:
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidOption(f"{setting}: a token has no blanks and no control characters in it")
    return f"Bearer {token}"


def headers_of(pairs: Sequence[str], setting: str) -> dict[str, str]:
    """`Name: value` each. Raises `InvalidOption`, without the values, which may be secrets."""
    made: dict[str, str] = {}
    for pair in pairs:
        if not pair.strip():
            continue
        name, colon, value = pair.partition(":")
        if not colon:
            raise InvalidOption(f"{setting}: a header is NAME:VALUE, and one has no colon")
        checked, text = header(name.strip(), value.strip(), setting)
        made[checked] = text
    return made


def header(name: str, value: str, setting: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise InvalidOption(f"{setting}: {name!r} is no name of a header")
    if name.lower() in _OURS:
        raise InvalidOption(f"{setting}: {name} is set by the connector itself")
    if any((ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in value) or not value.isascii():
        raise InvalidOption(f"{setting}: the value of {name} has a control character, or one that is not ASCII")
    return name, value


def secret_of(options: Values, name: str) -> str | None:
    found = options.secret(name)
    return None if found is None else found.secret


def credentials(options: Values) -> dict[str, str]:
    """Of the settings `http.auth…`, which our own source and sink have. Raises `InvalidOption`."""
    match options.text("http.auth"):
        case "basic":
            user = options.optional_text("http.auth.user")
            if user is None:
                raise InvalidOption("http.auth.user is missing, and http.auth is basic")
            return {"Authorization": basic(user, secret_of(options, "http.auth.password") or "", "http.auth.user")}
        case "bearer":
            token = secret_of(options, "http.auth.token")
            if not token:
                raise InvalidOption("http.auth.token is missing, and http.auth is bearer")
            return {"Authorization": bearer(token, "http.auth.token")}
    return {}
