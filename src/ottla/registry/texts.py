"""Texts of schemas, parsed: once for as long as they are in use, and never on the loop.

A schema may be hostile, and even an honest one may be large. So parsing, rendering and comparing are done by a worker,
within `Limits`; what comes back is kept, the most recently used of it, by what was given. What was parsed before is
there at once.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from ottla.base.ports import Workers
from ottla.client.promise import Promise
from ottla.registry.refusals import invalid_schema
from ottla.schemas.levels import Level, check
from ottla.schemas.registry_port import Reference
from ottla.schemas.schema import DEFAULT_LIMITS, KINDS, Entity, InvalidSchema, Limits, ParsedSchema, Policy, parse

ResultT = TypeVar("ResultT")

_MOST_TEXT: Final = 64 << 20
"""Characters of texts whose parsed forms are kept."""


class SchemaText(NamedTuple):
    """All that parsing depends on. `texts` is what it refers to, by name."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    as_new: bool = False
    normalize: bool = False
    strict: bool | None = None
    """Whether fields are held to `schema.validate.fields`; None: it is not asked whether the schema is valid."""
    add_tags: tuple[tuple[Entity, tuple[str, ...]], ...] = ()
    remove_tags: tuple[tuple[Entity, tuple[str, ...]], ...] = ()


class Understood(NamedTuple):
    """A schema as it is stored: its canonical text, and what that means."""

    parsed: ParsedSchema
    text: str


class Texts:
    """`workers` do the work; those that are in the cache, at most so many, need none."""

    def __init__(self, workers: Workers, limits: Limits = DEFAULT_LIMITS, most_kept: int = 1_000) -> None:
        self._workers = workers
        self._most_kept = most_kept
        self._limits = limits
        self._kept: OrderedDict[SchemaText, Understood] = OrderedDict()
        self._kept_characters = 0
        self._found: deque[tuple[SchemaText, Understood]] = deque()
        """What workers have parsed besides."""
        self._under_way: dict[SchemaText, Promise[Understood]] = {}
        self.parsed_count = 0

    def known(self, given: SchemaText) -> Understood | None:
        found = self._kept.get(given)
        if found is not None:
            self._kept.move_to_end(given)
        return found

    def understand(self, given: SchemaText) -> Promise[Understood]:
        """Rejected with `Refused` (42201) if it is no schema."""
        known = self.known(given)
        if known is not None:
            return Promise.resolved(known)
        waiting = self._under_way.get(given)
        if waiting is not None:
            return waiting
        promise: Promise[Understood] = Promise()
        self._under_way[given] = promise

        def then(found: Understood) -> None:
            del self._under_way[given]
            self._keep(given, found)
            promise.resolve(found)

        def failed(problem: Exception) -> None:
            del self._under_way[given]
            promise.reject(problem)

        self._workers.run(lambda: understand(given, self._limits), then, failed)
        return promise

    def _keep(self, given: SchemaText, found: Understood) -> None:
        self.parsed_count += 1
        self._kept[given] = found
        self._kept_characters += len(given.text)
        while len(self._kept) > self._most_kept or (self._kept_characters > _MOST_TEXT and len(self._kept) > 1):
            oldest, _ = self._kept.popitem(last=False)
            self._kept_characters -= len(oldest.text)

    def on_worker(self, work: Callable[[], ResultT]) -> Promise[ResultT]:
        """Something that compares or renders what was parsed."""
        promise: Promise[ResultT] = Promise()

        def then(result: ResultT) -> None:
            self._keep_found()
            promise.resolve(result)

        self._workers.run(work, then, promise.reject)
        return promise

    def understand_now(self, given: SchemaText) -> Understood:
        """For a worker: what is not known is parsed here, and kept when the loop's thread comes by."""
        found = self._kept.get(given)
        if found is None:
            found = understand(given, self._limits)
            self._found.append((given, found))
        return found

    def _keep_found(self) -> None:
        while self._found:
            given, found = self._found.popleft()
            if given not in self._kept:
                self._keep(given, found)


def understand(given: SchemaText, limits: Limits = DEFAULT_LIMITS) -> Understood:
    """Parses a text, on any thread. Raises `Refused` (42201)."""
    if given.kind not in KINDS:
        raise invalid_schema(f"Invalid schema type {given.kind}")
    try:
        parsed = parse(given.kind, given.text, dict(given.texts), as_new=given.as_new, limits=limits)
    except InvalidSchema as problem:
        raise invalid_schema(f"Invalid schema of type {given.kind}, details: {problem}") from None
    except ModuleNotFoundError as problem:
        raise invalid_schema(f"Invalid schema of type {given.kind}, details: {problem}") from None
    try:
        if given.add_tags or given.remove_tags:
            parsed = parsed.with_tags(dict(given.add_tags), dict(given.remove_tags))
        if given.strict is not None:
            parsed.validate(given.strict)
        if given.normalize:
            parsed = parsed.normalize()
        return Understood(parsed, parsed.canonical)
    except InvalidSchema as problem:
        raise invalid_schema(f"Invalid schema {given.text[:200]}, details: {problem}") from None


def compatibility_messages(
    new: ParsedSchema, previous: Iterable[tuple[int, ParsedSchema]], level: str, policy: str | None
) -> list[str]:
    """Why `new` may not follow the versions, the newest first; empty if it may. Raises `Refused` (42201)."""
    lenient: Policy = "LENIENT" if policy == "LENIENT" else "STRICT"
    try:
        return list(check(Level[level], new, previous, lenient).messages)
    except InvalidSchema as problem:
        raise invalid_schema(str(problem)) from None


def rendered(understood: Understood, format: str) -> str:
    """The text in another format. Raises `Refused` (42201)."""
    try:
        return understood.parsed.rendered(format)
    except InvalidSchema as problem:
        raise invalid_schema(str(problem)) from None
