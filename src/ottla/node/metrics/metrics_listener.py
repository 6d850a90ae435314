"""Where a node's metrics and probes are served (`ottla.metrics.listener`), and who may read them.

Names and passwords, or tokens, are compared as they stand in the settings: there are few, they read numbers only, and
Prometheus has them in its own file. Logins and tokens may both be given; either will do. TLS is that of the node's
listeners (`NodeTls`): certificates are read again when their files change.
"""

from base64 import b64decode
from collections.abc import Callable
from errno import EADDRINUSE
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.values import HIDDEN, Password
from ottla.node.listeners import METRICS
from ottla.node.metrics.node_health import NodeHealth
from ottla.node.metrics.node_watch import NodeWatch
from ottla.node.node_tls import NodeTls
from ottla.runtime.exposition import PageServer, Verdict
from ottla.runtime.world import World
from ottla.wire.http import HttpRequest

if TYPE_CHECKING:
    from ottla.node.node import Node

_REALM: Final = "ottla metrics"


class Readers:
    """Who may read the metrics. Making one raises `ConfigError`."""

    def __init__(self, values: Values) -> None:
        self._logins = [one.encode() for one in _secrets(values, "ottla.metrics.basic.auth")]
        self._tokens = [one.encode() for one in _secrets(values, "ottla.metrics.bearer.tokens")]
        if any(b":" not in login or login.startswith(b":") for login in self._logins):
            problem = Problem("ottla.metrics.basic.auth", HIDDEN, "name:password, or several with commas between")
            raise ConfigError((problem,))

    @property
    def are_all(self) -> bool:
        return not self._logins and not self._tokens

    @property
    def challenges(self) -> list[tuple[str, str]]:
        schemes = (["Basic"] if self._logins else []) + (["Bearer"] if self._tokens else [])
        return [("WWW-Authenticate", f'{scheme} realm="{_REALM}"') for scheme in schemes]

    def may_read(self, request: HttpRequest) -> bool:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return _is_among(shown.strip().encode("latin-1"), self._tokens)
        if scheme.lower() == "basic":
            try:
                return _is_among(b64decode(shown.strip(), validate=True), self._logins)
            except ValueError:
                return False
        return False


def _secrets(values: Values, key: str) -> list[str]:
    value = values[key]
    text = value.secret if isinstance(value, Password) else ""
    return [one.strip() for one in text.split(",") if one.strip()]


def _is_among(shown: bytes, known: list[bytes]) -> bool:
    """Compared with all of them, so that the time tells nothing."""
    return sum(compare_digest(shown, one) for one in known) > 0


def serve_node(node: "Node", world: World, tls: NodeTls) -> tuple[NodeWatch, int]:
    """Serves until the node goes down. Returns what is watched, and the port. Raises `ConfigError`, `OSError`."""
    listener = node.config.metrics
    assert listener is not None
    readers = Readers(node.config.values)
    health = NodeHealth(world, node.config.log_dirs)

    def ready() -> Verdict:
        why = node.not_ready()
        return Verdict(True, "ready") if why is None else Verdict(False, f"not ready: {why}")

    server = PageServer(
        world.network,
        world.timers,
        node.metrics_page,
        probes={"/healthz": health.verdict, "/readyz": ready},
        may_read=None if readers.are_all else readers.may_read,
        challenges=readers.challenges,
    )
    try:
        port = server.listen(listener.host, listener.port, tls.secure(METRICS, _count(server)))
    except OSError as problem:
        server.http.close()
        more = "; another process listens there: choose another port" if problem.errno == EADDRINUSE else ""
        where = f"{listener.host}:{listener.port}"
        raise OSError(problem.errno, f"cannot serve metrics on {where}: {problem.strerror}{more}") from problem
    node.also_close.append(server.http.close)
    watch = NodeWatch(world, health, node.loop_times, tls)
    health.start()
    watch.start()
    return watch, port


def _count(server: PageServer) -> Callable[[str], None]:
    def on_refused(_reason: str) -> None:
        server.http.counts["handshakes_failed"] += 1

    return on_refused
