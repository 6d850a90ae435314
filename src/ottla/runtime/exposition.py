"""Prometheus' text format, and the page that hands it out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ports import Network, Timers
from ottla.runtime.http.http_server import Caller, HttpLimits, HttpServer, Respond
from ottla.runtime.http.pages import in_pieces
from ottla.wire.http import HttpRequest, response_bytes, response_head

if TYPE_CHECKING:
    from ottla.runtime.server import Secure

_MAX_HEAD = 8192
_MOST_CONNECTIONS = 256
_WAITING = 256
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SAMPLES_A_PIECE = 2000
_LINES_A_PIECE = 5000

Labels = dict[str, str] | str
"""By name, or as `label_text` has them, for a caller that has many samples with the same labels."""
Sample = tuple[Labels, float]


class Exposition:
    """A page of metrics in the making. One of thousands of samples is taken piece by piece, with time in between."""

    def __init__(self, helps: Mapping[str, str] | None = None) -> None:
        """`helps` is what there is to say of metrics, by name."""
        self._helps = helps or {}
        self._lines: list[str] = []
        self._last_name = ""

    def head(self, name: str, kind: str, help: str | None = None) -> None:
        """Before the samples of a metric, once."""
        if name != self._last_name:
            if (text := help or self._helps.get(name)) is not None:
                self._lines.append(f"# HELP {name} {text}\n")
            self._lines.append(f"# TYPE {name} {kind}\n")
            self._last_name = name

    def add_text(self, samples: str) -> None:
        """Samples of the metric whose head came last, as they are to stand on the page: for very many."""
        self._lines.append(samples)

    def add(self, name: str, kind: str, samples: Iterable[Sample]) -> None:
        """One metric with its samples; one without samples is left out."""
        for labels, value in samples:
            self.head(name, kind)
            self._lines.append(f"{name}{label_text(labels)} {_number(value)}\n")

    def add_in_pieces(self, name: str, kind: str, samples: Iterable[Sample]) -> Iterator[str]:
        """As `add`, for a metric with very many samples: yields the page so far, again and again."""
        remaining = iter(samples)
        while some := list(islice(remaining, _SAMPLES_A_PIECE)):
            self.add(name, kind, some)
            yield self.take()

    def add_column(self, name: str, kind: str, labels: Sequence[str], values: Sequence[float]) -> Iterator[str]:
        """As `add_in_pieces`, for numbers beside labels as text, each with a space behind it: the quickest way."""
        for start in range(0, len(labels), _LINES_A_PIECE):
            self.head(name, kind)
            end = start + _LINES_A_PIECE
            self._lines.append(_column(name, labels[start:end], values[start:end]))
            yield self.take()

    def counter(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "counter", [(labels, value)])

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "gauge", [(labels, value)])

    def take(self) -> str:
        """What has been added since the last time."""
        lines, self._lines = self._lines, []
        return "".join(lines)


def _column(name: str, labels: Sequence[str], values: Sequence[float]) -> str:
    """A line for each. Nothing is made for a line but its number, and not even that where all numbers are the same, as
    they often are: joined, 200,000 lines take a fifth of the time that a format for each of them takes."""
    first = values[0]
    if values.count(first) == len(values):
        between = f"{first}\n{name}"
        return f"{name}{between.join(labels)}{first}\n"
    parts = [f"\n{name}"] * (3 * len(labels))
    parts[0] = name
    parts[1::3] = labels
    parts[2::3] = map(str, values)
    parts.append("\n")
    return "".join(parts)


def label_text(labels: Labels) -> str:
    if not labels or isinstance(labels, str):
        return str(labels or "")
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def escaped(value: str) -> str:
    """As the value of a label is written, between its quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


class Verdict(NamedTuple):
    """What a probe is answered: whether all is well, and a line or more of why."""

    is_well: bool
    reason: str


class PageServer:
    """Serves `/metrics`, and probes by their paths. `may_read` says which requests may see the metrics; probes ask
    nobody who they are.

    A page is made once for all who ask while it is made, and is in memory once, however slowly they take it. Between
    two pieces of it the loop does whatever else there is to do.
    """

    def __init__(
        self,
        network: Network,
        timers: Timers,
        page: Callable[[], Iterable[str]],
        *,
        probes: Mapping[str, Callable[[], Verdict]] | None = None,
        may_read: Callable[[HttpRequest], bool] | None = None,
        challenges: Iterable[tuple[str, str]] = (),
    ) -> None:
        limits = HttpLimits(head_bytes=_MAX_HEAD, body_bytes=0, connections=_MOST_CONNECTIONS, backlog=_WAITING)
        self.http = HttpServer(network, timers, self._answer, limits)
        self._timers = timers
        self._page = page
        self._probes = dict(probes or {})
        self._may_read = may_read
        self._challenges = list(challenges)
        self._awaiting: list[tuple[Respond, bool]] = []

    def listen(self, host: str, port: int, secure: "Secure | None" = None) -> int:
        """Binds, and serves from now on; returns the port. Raises `OSError` when the address is taken."""
        _, bound = self.http.listen(host, port, "metrics", secure)
        self.http.start_accepting()
        return bound

    def _answer(self, request: HttpRequest, _caller: Caller, respond: Respond) -> None:
        is_head = request.method == "HEAD"

        def reply(status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
            respond(response_bytes(status, body, CONTENT_TYPE, headers, is_head=is_head))

        path = request.path
        if request.method not in ("GET", "HEAD"):
            reply(405, b"only GET is served here\n")
        elif (probe := self._probes.get(path)) is not None:
            verdict = probe()
            reply(200 if verdict.is_well else 503, f"{verdict.reason}\n".encode())
        elif path not in ("/metrics", "/"):
            reply(404, b"the metrics are at /metrics\n")
        elif self._may_read is not None and not self._may_read(request):
            self.http.counts["unauthorized"] += 1
            reply(401, b"a name and password or a token is needed for the metrics\n", self._challenges)
        else:
            self._awaiting.append((respond, is_head))
            if len(self._awaiting) == 1:
                in_pieces(self._timers, self._page(), lambda page: self._tell(200, page), self._on_failed)

    def _on_failed(self, problem: Exception) -> None:
        self.http.on_fault("the metrics page", problem)
        self._tell(500, [b"the metrics page failed; the log says why\n"])

    def _tell(self, status: int, body: list[bytes]) -> None:
        awaiting, self._awaiting = self._awaiting, []
        head = response_head(status, sum(map(len, body)), CONTENT_TYPE)
        for respond, is_head in awaiting:
            respond(head, *(() if is_head else body))


def serve_metrics(
    network: Network, timers: Timers, host: str, port: int, page: Callable[[], Iterable[str]]
) -> tuple[HttpServer, int]:
    """Serves `GET /metrics` to everybody; returns the server and the port it got."""
    server = PageServer(network, timers, page)
    bound = server.listen(host, port)
    return server.http, bound
