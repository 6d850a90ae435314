"""The keys of a token provider, kept fresh: read from a file or asked for by HTTP, on a worker and never on the loop.

They are asked for again every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and soon when a token names a key that is
not known, which is how providers change keys. After a failure there is a pause that grows. As long as there are no
keys, no token is believed.
"""

import http.client
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ottla.base.ports import Timer
from ottla.config.parse import ConfigError, Problem, Values
from ottla.runtime.world import World
from ottla.security.sasl.jwks import Keys, PublicKey, WrongKeys, parse_keys

if TYPE_CHECKING:
    from ssl import SSLContext

_log = logging.getLogger(__name__)
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_MOST_BYTES: Final = 1 << 20
_TIMEOUT_S: Final = 10.0
_BETWEEN_UNKNOWN_S: Final = 10.0
_OK: Final = 200


class ProviderKeys:
    """Of one URL. `values` are the settings of its listener."""

    def __init__(self, world: World, url: str, values: Values) -> None:
        self._world = world
        self._url = url
        self._refresh_s = values.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000
        self._pause_ms = values.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
        self._most_pause_ms = values.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
        self._connect_s = _seconds(values["sasl.login.connect.timeout.ms"])
        self._read_s = _seconds(values["sasl.login.read.timeout.ms"])
        self._context = _context(values) if urlsplit(url).scheme == "https" else None
        self._keys: Keys = {}
        self._failures = 0
        self._is_asking = False
        self._timer: Timer | None = None
        self._asked_s = -_BETWEEN_UNKNOWN_S
        self._ask()

    def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """A key without an id is only found where there is one that fits."""
        if key_id is not None:
            found = self._keys.get(key_id)
            if found is None and self._world.timers.now_s() - self._asked_s >= _BETWEEN_UNKNOWN_S:
                self._ask()
            return found
        fitting = [key for key in self._keys.values() if key.fits(algorithm)]
        return fitting[0] if len(fitting) == 1 else None

    def _ask(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        self._asked_s = self._world.timers.now_s()
        self._world.workers.run(self._read, self._on_keys, self._on_failed, key=self)

    def _on_keys(self, keys: Keys) -> None:
        self._is_asking = False
        self._failures = 0
        self._keys = keys
        if self._refresh_s > 0:
            self._ask_after(self._refresh_s)

    def _on_failed(self, problem: Exception) -> None:
        self._is_asking = False
        self._failures += 1
        pause_ms = min(self._pause_ms << min(self._failures - 1, 20), self._most_pause_ms)
        _log.warning("cannot fetch the keys of %s; next try in %s ms: %s", self._url, pause_ms, problem)
        self._ask_after(max(pause_ms, 1) / 1000)

    def _ask_after(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._world.timers.after(delay_s, self._ask)

    # On a worker

    def _read(self) -> Keys:
        parts = urlsplit(self._url)
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as file:
                return parse_keys(file.read(_MOST_BYTES))
        return parse_keys(self._get(parts.scheme, parts.hostname or "", parts.port, parts.path, parts.query))

    def _get(self, scheme: str, host: str, port: int | None, path: str, query: str) -> bytes:
        """Redirects are not followed, and no more than a megabyte is read."""
        connection: http.client.HTTPConnection
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self._connect_s, context=self._context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._connect_s)
        try:
            connection.connect()
            connection.sock.settimeout(self._read_s)
            connection.request("GET", (path or "/") + (f"?{query}" if query else ""))
            response = connection.getresponse()
            if response.status != _OK:
                raise WrongKeys(f"the provider answers {response.status}")
            return response.read(_MOST_BYTES)
        except http.client.HTTPException as problem:
            raise OSError(f"{type(problem).__name__}: {problem}") from problem
        finally:
            connection.close()


def check_url(url: str) -> None:
    """Raises `ConfigError` for text that is not an address of keys."""
    parts = urlsplit(url)
    is_file = parts.scheme == "file" and bool(parts.path) and parts.netloc in ("", "localhost")
    if not is_file and not (parts.scheme in ("http", "https") and parts.hostname):
        raise ConfigError((Problem(URL, url, "a URL with https, http or file"),))


def _seconds(value: object) -> float:
    return value / 1000 if isinstance(value, int) else _TIMEOUT_S


def _context(values: Values) -> "SSLContext":
    from ottla.security.tls.contexts import client_context

    return client_context(values)
