"""Counts and times of requests, per API: Kafka's RequestMetrics.

Times go into buckets whose width grows with the time (about 9 % from one to the next), so that noting one costs an
addition and any quantile can be read off. Two sets of buckets take turns, a minute each, so that what is shown is of
the last one to two minutes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from math import frexp

from ottla.runtime.admission import ConnectionRates
from ottla.runtime.request import RequestContext

_PER_OCTAVE = 8
_OCTAVES = 34  # from a microsecond to some four hours
_WINDOW_S = 60.0
_FIRST_OCTAVE, _LAST_OCTAVE = 8, 25  # 256 us and 34 s, for histograms
AUTHENTICATION_OUTCOMES = (
    "successful_authentication",
    "failed_authentication",
    "successful_reauthentication",
    "failed_reauthentication",
    "expired_connections_killed",
)
"""What Kafka's metrics of listeners with SASL are called."""
REFUSALS = ("connection_creation_rate", "max.connections.per.ip", "TLS handshake", "not ready to authenticate")
"""Why connections are refused, most often: these are on the page from the beginning."""
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Times:
    """How long one kind of thing took, in the last minutes and in all."""

    __slots__ = ("_current", "_older", "_previous", "_turned_s", "count", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self._turned_s = 0.0
        self._current = [0] * (_PER_OCTAVE * _OCTAVES)
        self._previous = [0] * (_PER_OCTAVE * _OCTAVES)
        self._older = [0] * _OCTAVES
        """Those of the windows before, for the histogram, which forgets nothing."""

    def note(self, seconds: float, now_s: float) -> None:
        self.note_in(bucket_of(seconds), seconds, now_s)

    def note_in(self, bucket: int, seconds: float, now_s: float) -> None:
        """The same, for who knows the bucket."""
        if now_s - self._turned_s > _WINDOW_S:
            self._turn(now_s)
        self.count += 1
        self.total_s += seconds
        self._current[bucket] += 1

    def quantiles(self, now_s: float) -> dict[float, float]:
        """Quantile to seconds; empty when there was nothing lately."""
        if now_s - self._turned_s > _WINDOW_S:
            self._turn(now_s)
        counts = [one + other for one, other in zip(self._current, self._previous, strict=True)]
        total = sum(counts)
        found: dict[float, float] = {}
        seen = 0
        wanted = iter(QUANTILES)
        quantile = next(wanted)
        for bucket, count in enumerate(counts if total else ()):
            seen += count
            while seen >= quantile * total:
                found[quantile] = _upper_bound(bucket)
                if (quantile := next(wanted, 2)) == 2:
                    return found
        return found

    def histogram(self) -> list[tuple[float, int]]:
        """How many took less than so many seconds, since the start: from 256 us to half a minute."""
        octaves = [
            older + sum(self._current[place : place + _PER_OCTAVE]) + sum(self._previous[place : place + _PER_OCTAVE])
            for older, place in zip(self._older, range(0, _PER_OCTAVE * _OCTAVES, _PER_OCTAVE), strict=True)
        ]
        totals = list(accumulate(octaves))
        return [(2.0**octave / 1e6, totals[octave - 1]) for octave in range(_FIRST_OCTAVE, _LAST_OCTAVE + 1)]

    def _turn(self, now_s: float) -> None:
        gone = self._previous if now_s - self._turned_s <= 2 * _WINDOW_S else _added(self._current, self._previous)
        for octave in range(_OCTAVES):
            self._older[octave] += sum(gone[octave * _PER_OCTAVE : (octave + 1) * _PER_OCTAVE])
        is_recent = now_s - self._turned_s <= 2 * _WINDOW_S
        self._previous, self._current = self._current if is_recent else [0] * len(self._current), self._previous
        self._current[:] = [0] * len(self._current)
        self._turned_s = now_s


def _added(one: list[int], other: list[int]) -> list[int]:
    return [first + second for first, second in zip(one, other, strict=True)]


def bucket_of(seconds: float) -> int:
    microseconds = int(seconds * 1e6)
    return _BUCKETS[microseconds] if 0 <= microseconds < _QUICK else _bucket(microseconds)


def _bucket(microseconds: int) -> int:
    mantissa, exponent = frexp(microseconds + 1)  # mantissa in [0.5, 1)
    bucket = (exponent - 1) * _PER_OCTAVE + int((mantissa - 0.5) * 2 * _PER_OCTAVE)
    return min(bucket, _PER_OCTAVE * _OCTAVES - 1)


# What most requests take is looked up: the same numbers, octave by octave.
_BUCKETS = [
    octave * _PER_OCTAVE + ((number - (1 << octave)) * _PER_OCTAVE >> octave)
    for octave in range(11)
    for number in range(1 << octave, 2 << octave)
]
_QUICK = len(_BUCKETS)


def _upper_bound(bucket: int) -> float:
    octave, step = divmod(bucket, _PER_OCTAVE)
    microseconds: float = 2.0**octave * (1 + (step + 1) / _PER_OCTAVE) - 1
    return microseconds / 1e6


class OfApi:
    """What is known of the requests of one API."""

    __slots__ = ("bytes", "times", "versions")

    def __init__(self) -> None:
        self.versions: defaultdict[int, int] = defaultdict(int)
        self.bytes = 0
        self.times = Times()


class RequestMetrics:
    """The server's `Traffic`. A request counts once it is answered, as in Kafka.

    `unanswered` tells how many are not yet, `connection_rates` how often clients come; they are the server's to say.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.unanswered: Callable[[], int] = int
        self.connection_rates: ConnectionRates | None = None
        self.apis: dict[int, OfApi] = {}
        self.connections: Counter[str] = Counter()
        self.connections_created: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.authentications: Counter[tuple[str, str]] = Counter()
        """By listener and outcome (`AUTHENTICATION_OUTCOMES`)."""
        self._now_s = now_s

    def on_connection(self, listener: str, change: int) -> None:
        self.connections[listener] += change
        if change > 0:
            self.connections_created[listener] += change

    def on_responses(self, answered: Iterable[RequestContext], now_s: float) -> None:
        """Called for every turn, of which there may be one for every request. Those that came together took as long."""
        apis, received_s, seconds, bucket = self.apis, -1.0, 0.0, 0
        for request in answered:
            if request.received_s != received_s:
                received_s = request.received_s
                seconds = now_s - received_s
                bucket = bucket_of(seconds)
            found = apis.get(request.api_key)
            if found is None:
                found = apis[request.api_key] = OfApi()
            found.versions[request.api_version] += 1
            found.bytes += request.size
            found.times.note_in(bucket, seconds, now_s)

    def on_refused(self, reason: str) -> None:
        self.refused[reason] += 1

    def on_fault(self, where: str) -> None:
        """An exception that nobody expected: in a request of the API with that name, or elsewhere."""
        self.faults[where] += 1

    def now_ms(self) -> int:
        """As the server counts it."""
        return int(self._now_s() * 1000)

    def on_authentication(self, listener: str, outcome: str) -> None:
        self.authentications[listener, outcome] += 1

    def quantiles(self) -> dict[int, dict[float, float]]:
        now_s = self._now_s()
        return {api_key: found.times.quantiles(now_s) for api_key, found in self.apis.items()}
