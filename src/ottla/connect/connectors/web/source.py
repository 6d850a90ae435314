"""Replies to records: an address is asked again and again, each time for what comes behind the offset.

Theory of operation. The offset says which reply is being read and how many of its items are written:
`{"at": "17", "items": 3}`. `at` is put into the address for `${offset}`; with `link` it is the address. How the reply
behind this one is found depends on `http.offset.mode`:

    cursor      the reply names it, at `http.offset.pointer`
    link        the reply names it, in the header Link with rel="next" (RFC 8288)
    page        the next number
    item        the last item names it, at `http.offset.pointer`: a time, a number that grows
    none        there is only one reply, which grows

The last reply there is may still grow: it is asked for again, and items that are written already are passed over. So a
reply must keep its items in their order and only add behind them, as feeds and lists ordered by time or number do. One
that becomes shorter is refused by name: which of its items are new cannot be known.

With `item` the address asks for what is at or behind an offset. Items with the offset's own value may come again, or
not: as many as were written are passed over. Items must come in the order of that value; others are refused.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from time import monotonic, sleep
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urljoin

from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Int, Secret, Text
from ottla.connect.arrow_tables import without_positions
from ottla.connect.connector import Problem, Source, SourceRecords
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.web.client import Limits, Patience, Reply, Request, Url, WebClient, parse_url, patiently
from ottla.connect.connectors.web.options import credentials, headers_of, secret_of, tls_context, tls_rows
from ottla.connect.converters.json_rows import schemaless
from ottla.connect.data.columns import Schemaless
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.options import InvalidOption, read_options

_MISSING: Final = object()
_LINK: Final = re.compile(r"<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~-]+\s*(?:=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]+))?)*)")
_PARAMETER: Final = re.compile(r";\s*([\w!#$&+.^`|~-]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]+)))?")
_NOTHING_NEW: Final = (204, 304)


class _Place(NamedTuple):
    """Which reply, and how many of its items are written."""

    at: str
    items: int = 0


class HttpSource(Source):
    """ottla.connect.HttpSourceConnector"""

    settings = (
        Text("http.url", REQUIRED, ANY, HIGH, "The address, with ${offset} for where it is.", acted_on=True),
        Text("topic", REQUIRED, ANY, HIGH, "The topic to write to.", acted_on=True),
        Text(
            "http.offset.mode",
            REQUIRED,
            OneOf(("cursor", "link", "page", "item", "none")),
            HIGH,
            "What leads from one reply to the next.",
            acted_on=True,
        ),
        Text("http.offset.initial", "", ANY, HIGH, "The offset to begin with; of pages, 1.", acted_on=True),
        Text("http.offset.pointer", None, ANY, HIGH, "The offset in a reply or an item: /meta/next.", acted_on=True),
        Text("http.items.pointer", "", ANY, HIGH, "The items in a reply; none: the whole reply.", acted_on=True),
        Text("http.key.pointer", None, ANY, MEDIUM, "A record's key in its item; none: no key.", acted_on=True),
        Int("http.interval.ms", 10_000, at_least(0), MEDIUM, "The pause when nothing is new.", acted_on=True),
        Secret("http.headers", MEDIUM, "Headers: NAME:VALUE, with | between.", acted_on=True),
        Text(
            "http.auth",
            "none",
            OneOf(("none", "basic", "bearer")),
            HIGH,
            "Credentials: a user with a password (basic), or a token (bearer).",
            acted_on=True,
        ),
        Text("http.auth.user", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("http.auth.password", HIGH, "Their password.", acted_on=True),
        Secret("http.auth.token", HIGH, "The token.", acted_on=True),
        Int("http.reply.bytes", 16 << 20, at_least(1), LOW, "Bytes of a reply, at most.", acted_on=True),
        Int("http.connect.timeout.ms", 10_000, at_least(1), LOW, "How long connecting may take.", acted_on=True),
        Int("http.timeout.ms", 30_000, at_least(1), LOW, "How long a request and its reply may take.", acted_on=True),
        Int("retries", 5, at_least(0), LOW, "Tries more, before the connector starts anew.", acted_on=True),
        Int("retry.backoff.ms", 500, at_least(0), LOW, "The first pause between tries; they grow.", acted_on=True),
        *tls_rows("http."),
    )
    _client: WebClient | None = None

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            _check(config)
        except ConnectError as problem:
            return [(setting_of(str(problem), cls.settings, "http.url"), str(problem))]
        return []

    def start(self) -> None:
        _check(self.config)
        options = self.options()
        self._url, self._topic = options.text("http.url"), options.text("topic")
        self._mode = options.text("http.offset.mode")
        self._items = options.text("http.items.pointer")
        self._pointer, self._key = (
            options.optional_text("http.offset.pointer"),
            options.optional_text("http.key.pointer"),
        )
        self._interval_s = options.integer("http.interval.ms") / 1000
        self._headers = headers_of((secret_of(options, "http.headers") or "").split("|"), "http.headers")
        self._headers |= credentials(options)
        limits = Limits(
            options.integer("http.connect.timeout.ms") / 1000,
            options.integer("http.timeout.ms") / 1000,
            options.integer("http.reply.bytes"),
        )
        self._patience = Patience(options.integer("retries"), options.integer("retry.backoff.ms") / 1000)
        self._client = WebClient(limits, tls_context(options, "http.", self.context.worker))
        self._partition = {"url": self._url}
        said = self.context.offset(self._partition)
        self._place = self._first() if said is None else _place_of(said)
        if self._mode == "link" and not self._is_own(parse_url(self._place.at, "the stored offset")):
            raise ConnectError(
                f"the stored offset leads to another origin than http.url, which is not asked: alter or reset the "
                f"offsets of connector {self.context.connector}"
            )
        self._next_poll_s = monotonic()

    def _first(self) -> _Place:
        initial = self.options().text("http.offset.initial")
        if self._mode == "link":
            return _Place(self._url)
        return _Place("1" if self._mode == "page" and not initial else initial)

    def _is_own(self, url: Url) -> bool:
        """Whether the credentials may go there."""
        return url.origin == parse_url(self._url, "http.url").origin

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        wait_s = self._next_poll_s - monotonic()
        if wait_s > 0:
            sleep(min(wait_s, timeout_s))
            if wait_s > timeout_s:
                return []
        found, place = self._behind(self._place)
        if place == self._place:
            self._next_poll_s = monotonic() + self._interval_s
            return []
        self._place = place
        offset = {"at": place.at, "items": place.items}
        return [SourceRecords(self._records(found), self._partition, offset)]

    def _behind(self, place: _Place) -> tuple[list[Any], _Place]:
        """New items, and the place behind them."""
        reply, said = self._asked(place.at)
        items = self._items_of(said, reply)
        if self._mode == "item":
            return self._behind_items(place, items, reply)
        if reply.status in _NOTHING_NEW and self._mode != "page":
            return [], place
        new = self._new(place, items, reply)
        if self._mode == "page":
            return self._behind_page(place, new, len(items))
        after = self._next(said, reply)
        if after is None or after == place.at:
            return new, _Place(place.at, len(items))
        return new, _Place(after)

    def _new(self, place: _Place, items: list[Any], reply: Reply) -> list[Any]:
        if len(items) < place.items:
            raise ConnectError(
                f"{reply.url} has {len(items)} items, and {place.items} of it are written: it does not only grow, so "
                f"what is new cannot be known; use another http.offset.mode than {self._mode}"
            )
        return items[place.items :]

    def _behind_page(self, place: _Place, new: list[Any], count: int) -> tuple[list[Any], _Place]:
        if new or not count:
            return new, place._replace(items=count)
        after = str(int(place.at) + 1)
        reply, said = self._asked(after)
        if not self._items_of(said, reply):
            return [], place
        # The next page has begun, so this one is complete; it may have grown since it was read.
        reply, said = self._asked(place.at)
        return self._new(place, self._items_of(said, reply), reply), _Place(after)

    def _behind_items(self, place: _Place, items: list[Any], reply: Reply) -> tuple[list[Any], _Place]:
        assert self._pointer is not None
        values = [self._offset_in(item, reply) for item in items]
        for before, value in pairwise(values):
            if not _is_ordered(before, value):
                raise ConnectError(
                    f"{reply.url}: items are not in the order of http.offset.pointer={self._pointer}: {value!r} comes "
                    f"behind {before!r}; ask for them in that order"
                )
        if place.items and values and not _is_ordered(_as(values[0], place.at), values[0]):
            raise ConnectError(
                f"{reply.url}: an item's http.offset.pointer={self._pointer} is {values[0]!r}, which is before the "
                f"offset {place.at!r} that was asked for: it would be written at each poll; ask for what is at or "
                "behind ${offset}"
            )
        passed = 0
        while passed < min(place.items, len(values)) and _text(values[passed]) == place.at:
            passed += 1
        new = items[passed:]
        if not new:
            return [], place
        last = _text(values[-1])
        same = sum(1 for value in values if _text(value) == last)
        return new, _Place(last, max(same, place.items + len(new) if last == place.at else same))

    def _offset_in(self, item: Any, reply: Reply) -> Any:
        assert self._pointer is not None
        value = resolve(item, self._pointer)
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ConnectError(f"{reply.url}: an item has no text or number at http.offset.pointer={self._pointer}")
        return value

    def _next(self, said: Any, reply: Reply) -> str | None:
        if self._mode == "link":
            found = next_link(reply.headers.get("link", ""))
            if found is None:
                return None
            url = parse_url(urljoin(reply.url.text, found).partition("#")[0], "the Link header")
            if not self._is_own(url):
                raise ConnectError(f"{reply.url} names {url} as the next: another origin, which is not asked")
            return url.text
        if self._mode != "cursor":
            return None
        assert self._pointer is not None
        value = resolve(said, self._pointer)
        if value is _MISSING or value is None or value == "":
            return None
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ConnectError(f"{reply.url}: no text or number is at http.offset.pointer={self._pointer}")
        return _text(value)

    # Replies.

    def _asked(self, at: str) -> tuple[Reply, Any]:
        """A reply, and what it says; None if it says that nothing is new."""
        assert self._client is not None, "the source is not started"
        text = at if self._mode == "link" else self._url.replace("${offset}", quote(at, safe=""))
        request = Request("GET", parse_url(text, "http.url"), None, {"Accept": "application/json"}, self._headers)
        reply = patiently(self._client, [request], self._patience, self.context.log)
        if reply.status in _NOTHING_NEW:
            return reply, None
        if not reply.is_good:
            raise ConnectError(f"http.url: {reply.shown()}")
        try:
            return reply, json.loads(reply.body, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ConnectError(f"{reply.url} answered what is no JSON: {error or 'it is nested too deep'}") from None

    def _items_of(self, said: Any, reply: Reply) -> list[Any]:
        if said is None:
            return []
        found = resolve(said, self._items)
        if found is None:
            return []
        if not isinstance(found, list):
            raise ConnectError(f"{reply.url}: no array is at http.items.pointer={self._items or '(the whole reply)'}")
        return found

    def _records(self, items: list[Any]) -> Any:
        try:
            values = tuple(schemaless(_finite(item)) for item in items)
        except RecursionError:
            raise ConnectError(f"{self._url.partition('?')[0]}: an item is nested too deep") from None
        except DataError as error:
            raise ConnectError(f"{self._url.partition('?')[0]}: {error}") from None
        keys: list[Any] = [None] * len(values)
        if self._key is not None:
            found = (resolve(item, self._key) for item in values)
            keys = [None if one is _MISSING else one for one in found]
        return without_positions(self._topic, Schemaless(tuple(keys)), Schemaless(values))


def _check(config: Mapping[str, str]) -> None:
    """Raises `InvalidOption` for settings that do not go together."""
    refuse_unknown("ottla.connect.HttpSourceConnector", HttpSource.settings, config)
    options = read_options(HttpSource.settings, config)
    mode, url = options.text("http.offset.mode"), options.text("http.url")
    credentials(options)
    if "${offset}" in url.partition("://")[2].partition("/")[0]:
        raise InvalidOption("http.url: the offset does not choose the host; put ${offset} behind it")
    parse_url(url.replace("${offset}", "0"), "http.url")
    if mode in ("cursor", "page", "item") and "${offset}" not in url:
        raise InvalidOption(f"http.url: http.offset.mode={mode} needs ${{offset}} in it")
    if mode in ("link", "none") and "${offset}" in url:
        raise InvalidOption(f"http.url: http.offset.mode={mode} has no ${{offset}} to put in")
    if mode in ("cursor", "item") and options.optional_text("http.offset.pointer") is None:
        raise InvalidOption(f"http.offset.pointer is missing: http.offset.mode={mode} needs it")
    initial = options.text("http.offset.initial")
    if mode == "page" and initial and not (initial.isascii() and initial.isdecimal()):
        raise InvalidOption(f"http.offset.initial={initial}: a page is a number")
    for name in ("http.offset.pointer", "http.items.pointer", "http.key.pointer"):
        pointer = options.optional_text(name)
        if pointer and not pointer.startswith("/"):
            raise InvalidOption(f"{name}={pointer}: a JSON pointer begins with / (RFC 6901)")


def _place_of(said: Mapping[str, Any]) -> _Place:
    at, items = said.get("at"), said.get("items", 0)
    if not isinstance(at, str) or not isinstance(items, int) or isinstance(items, bool) or items < 0:
        raise ConnectError(f'the offset {dict(said)!r} is none of this connector\'s: {{"at": "…", "items": 0}}')
    return _Place(at, items)


def resolve(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to, or `_MISSING`."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def next_link(text: str) -> str | None:
    """The target of rel="next" in a Link header."""
    for target, parameters in _LINK.findall(text):
        found = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(parameters)}
        if "next" in found.get("rel", "").lower().split():
            return str(target)
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _as(value: Any, text: str) -> Any:
    """An offset's text as what the value is: a text or a number."""
    if isinstance(value, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_ordered(before: Any, after: Any) -> bool:
    if isinstance(before, str) != isinstance(after, str):
        return False
    return bool(before <= after)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(value: Any) -> Any:
    """Raises `DataError` for a number that is too large for a double."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError("a number is too large")
    if isinstance(value, dict):
        for one in value.values():
            _finite(one)
    elif isinstance(value, list):
        for one in value:
            _finite(one)
    return value
