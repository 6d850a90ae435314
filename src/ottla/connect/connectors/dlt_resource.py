"""A resource or source of dlt to topics. dlt's own state is the offset.

    dlt.resource=shop.pipelines:orders      an object that @dlt.resource or @dlt.source made, in an installed package
    dlt.arg.region=north                    an argument of it
    topic=shop.${resource}

Theory of operation. An extraction runs the resources to their end, from the state that the last one left: what
`dlt.sources.incremental` and `dlt.current.resource_state()` keep. Only its end has a new state, since a resource may
give rows in any order. Batches before the end say, in the offset, how many items of the extraction are written, and a
digest of them:

    {"state": {…}}                                          between two extractions
    {"state": {…}, "items": 20000, "digest": "9f86d0…"}     within one that began from this state

A start within an extraction begins it again, and passes over as many items, if they are the same by their digest. So a
resource that gives the same items again for the same state is written exactly once. If they are others by now, all are
written: nothing is lost, and what was written before the crash is there twice.
"""

import copy
import hashlib
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, HIGH, MEDIUM, REQUIRED, Int, Text
from ottla.connect.arrow_tables import records_from_table, without_positions
from ottla.connect.connector import Problem, Source, SourceRecords
from ottla.connect.data.columns import nothing
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.options import InvalidOption

_ARGUMENT: Final = "dlt.arg."


class _Item(NamedTuple):
    """Something that a resource gave: rows, or a table of Arrow."""

    resource: str
    rows: Any
    size: int
    number: int
    """In the extraction, from 1."""
    digest: str


class DltSource(Source):
    """ottla.connect.DltSourceConnector"""

    settings = (
        Text("dlt.resource", REQUIRED, ANY, HIGH, "MODULE:NAME of a @dlt.resource or @dlt.source.", acted_on=True),
        Text("topic", REQUIRED, ANY, HIGH, "The topic; ${resource} is the resource's name.", acted_on=True),
        Text("dlt.key", None, ANY, MEDIUM, "The column whose value is the record's key; none: no key.", acted_on=True),
        Int("dlt.interval.ms", 60_000, at_least(0), MEDIUM, "The pause between two extractions.", acted_on=True),
    )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            _installed(config.get("dlt.resource", ""))
        except InvalidOption as problem:
            return [("dlt.resource", str(problem))]
        return []

    def start(self) -> None:
        options = self.options()
        self._entry = options.text("dlt.resource")
        self._topic, self._key = options.text("topic"), options.optional_text("dlt.key")
        self._interval_s = options.integer("dlt.interval.ms") / 1000
        self._made = _loaded(self._entry)
        arguments = {key.removeprefix(_ARGUMENT): self.config[key] for key in self.config if key.startswith(_ARGUMENT)}
        self._arguments = _typed(self._made, arguments)
        self._partition = {"dlt": self._entry}
        self._offset: dict[str, Any] = self.context.offset(self._partition) or {"state": {}}
        if not isinstance(self._offset.get("state"), dict):
            raise ConnectError(f"the offset of {self._entry} is none of this connector's: it has no state")
        self._schemas: dict[str, Any] = {}
        self._items: Iterator[_Item] | None = None
        self._state: dict[str, Any] = {}
        self._next_s = monotonic()

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        wait_s = self._next_s - monotonic()
        if wait_s > 0:
            sleep(min(wait_s, timeout_s))
            if wait_s > timeout_s:
                return []
        if self._items is None:
            self._items = self._begun()
        gathered: list[_Item] = []
        size, deadline_s = 0, monotonic() + timeout_s
        while size < self.context.max_bytes and (not gathered or monotonic() < deadline_s):
            item = next(self._items, None)
            if item is None:
                self._items = None
                self._next_s = monotonic() + self._interval_s
                before, self._offset = self._offset, {"state": self._state}
                if not gathered and before == self._offset:
                    return []
                return self._records(gathered)
            gathered.append(item)
            size += item.size
        last = gathered[-1]
        self._offset = {"state": self._offset["state"], "items": last.number, "digest": last.digest}
        return self._records(gathered)

    # Extraction.

    def _begun(self) -> Iterator[_Item]:
        """The items of an extraction that are not written yet."""
        skipped, digest = int(self._offset.get("items", 0)), self._offset.get("digest")
        items = self._extraction()
        if skipped:
            last = None
            for last in items:
                if last.number == skipped:
                    break
            if last is None or last.number != skipped or last.digest != digest:
                self.context.log.warning(
                    "connector %s: %s no longer gives the %d items that were written since its state was saved; all "
                    "of them are written again",
                    *(self.context.connector, self._entry, skipped),
                )
                items = self._extraction()
        return items

    def _extraction(self) -> Iterator[_Item]:
        """All items, from the state of the offset; `_state` is the state behind them, when they have come to an end."""
        from dlt.common.configuration.container import Container
        from dlt.common.json import json as typed
        from dlt.common.pipeline import StateInjectableContext

        state = typed.typed_loads(json.dumps(copy.deepcopy(self._offset["state"])))
        container, seen, count = Container(), hashlib.sha256(), 0

        def held() -> Any:
            return container.injectable_context(StateInjectableContext(state=state))

        with held():
            resources = list(_resources(self._made, self._arguments))
        for name, resource in resources:
            with held():
                items = iter(resource)
            while True:
                with held():  # not across `yield`: the next extraction has a state of its own
                    item = next(items, _END)
                if item is _END:
                    break
                rows = _rows_of(item, name)
                content = _content(rows)
                seen.update(content)
                count += 1
                yield _Item(name, rows, len(content), count, seen.hexdigest())
        self._state = json.loads(typed.typed_dumps(state))

    # Records.

    def _records(self, items: Sequence[_Item]) -> list[SourceRecords]:
        """Those of each resource; at least one, for the offset."""
        by_resource: dict[str, list[Any]] = {}
        for item in items:
            by_resource.setdefault(item.resource, []).append(item.rows)
        made = [self._of_resource(name, rows) for name, rows in by_resource.items()]
        made = made or [without_positions(self._topic, nothing(0), nothing(0))]
        return [SourceRecords(records, self._partition, self._offset) for records in made]

    def _of_resource(self, name: str, items: list[Any]) -> Any:
        try:
            tables = [_table(item) for item in _joined(items)]
            known = self._schemas.get(name)
            schemas = [table.schema for table in tables] + ([] if known is None else [known])
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            _refuse_rounding(schemas, schema)
            self._schemas[name] = schema
            table = pa.concat_tables([_with(table, schema) for table in tables])
            if self._key is not None and self._key not in table.schema.names:
                raise DataError(f"it has no column {self._key}, which dlt.key names")
            return records_from_table(self._topic.replace("${resource}", name), table, key=self._key)
        except (pa.ArrowException, DataError) as error:
            raise ConnectError(f"rows of resource {name} of {self._entry} are no records: {error}") from None


_END: Final = object()


def _installed(entry: str) -> tuple[str, str]:
    """Module and name, if the module is one of an installed package. Raises `InvalidOption`."""
    module, colon, name = entry.strip().partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise InvalidOption(f"dlt.resource={entry}: it must be MODULE:NAME")
    if not _is_installed(module):
        raise InvalidOption(
            f"dlt.resource={entry}: there is no module {module} in an installed package; install the package that has "
            "it where the worker runs"
        )
    return module, name


def _is_installed(module: str) -> bool:
    """From the outermost package inwards: to find a module within one, Python runs it."""
    places = list(_places_of_packages())
    names = module.split(".")
    for depth in range(1, len(names) + 1):
        try:
            spec = find_spec(".".join(names[:depth]))
        except (ImportError, ValueError):
            return False
        if spec is None:
            return False
        is_namespace = spec.origin is None and depth < len(names)
        files = list(spec.submodule_search_locations or ()) if is_namespace else [spec.origin or ""]
        if not files or not all(any(root in Path(one).resolve().parents for root in places) for one in files):
            return False
    return True


def _places_of_packages() -> Iterator[Path]:
    """Directories where packages are installed, and those where installed ones are developed."""
    for text in sys.path:
        place = Path(text or ".").resolve()
        if place.is_dir() and next(place.glob("*.dist-info"), None) is not None:
            yield place
    for package in distributions():
        said = json.loads(package.read_text("direct_url.json") or "{}")
        if said.get("dir_info", {}).get("editable") and str(said.get("url", "")).startswith("file:"):
            yield Path(unquote(urlsplit(said["url"]).path)).resolve()


def _loaded(entry: str) -> Any:
    """What the entry names. Raises `InvalidOption`."""
    os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")  # a connector tells nobody that it runs
    try:
        from dlt.extract import DltResource, DltSource
        from dlt.extract.reference import SourceFactory
    except ImportError as error:
        raise InvalidOption(f"dlt is not installed: {error}; pip install 'ottla[dlt]'") from None
    module, name = _installed(entry)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidOption(f"dlt.resource={entry} cannot be loaded: {error}") from None
    if not isinstance(found, DltResource | DltSource | SourceFactory):
        raise InvalidOption(f"dlt.resource={entry} is no resource: give it the decorator @dlt.resource or @dlt.source")
    return found


def _typed(made: Any, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Arguments as the function declares them: texts, and anything else as JSON. Raises `InvalidOption`."""
    if not arguments:
        return {}
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(made).parameters
    except (TypeError, ValueError):
        parameters = {}
    typed: dict[str, Any] = {}
    for name, text in arguments.items():
        if name not in parameters:
            raise InvalidOption(f"{_ARGUMENT}{name}: the resource has no such argument")
        kind = parameters[name].annotation
        if kind in (str, inspect.Parameter.empty, "str"):
            typed[name] = text
            continue
        try:
            typed[name] = json.loads(text)
        except ValueError:
            raise InvalidOption(f"{_ARGUMENT}{name}: it must be JSON, for a {kind}") from None
    return typed


def _resources(made: Any, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    from dlt.extract import DltResource, DltSource

    called = made if isinstance(made, DltSource) else made(**arguments)
    if isinstance(called, DltResource):
        yield called.name, called
    else:
        yield from called.selected_resources.items()


def _rows_of(item: Any, resource: str) -> Any:
    """A dict, or a table of Arrow. Raises `ConnectError`."""
    data = getattr(item, "data", item) if type(item).__name__.endswith("WithMeta") else item
    if hasattr(data, "to_arrow_table") or type(data).__name__ == "DataFrame":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table | dict):
        return data
    raise ConnectError(f"resource {resource} gave a {type(data).__name__}; it must give dicts or tables of Arrow")


def _content(rows: Any) -> bytes:
    """What tells an item from others."""
    if isinstance(rows, pa.Table):
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema) as writer:
            writer.write_table(rows)
        return bytes(stream.getvalue())
    from dlt.common.json import json as typed

    return bytes(typed.dumpb(rows, sort_keys=True))


def _joined(items: list[Any]) -> Iterator[Any]:
    """Dicts that follow each other together, as one list."""
    dicts: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            dicts.append(item)
            continue
        if dicts:
            yield dicts
            dicts = []
        yield item
    if dicts:
        yield dicts


def _table(rows: Any) -> Any:
    if isinstance(rows, pa.Table):
        return rows
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({str(name): pa.array([_plain(row.get(name)) for row in rows]) for name in names})


def _plain(value: Any) -> Any:
    """A value that Arrow knows."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    return value


def _refuse_rounding(schemas: Sequence[Any], joined: Any) -> None:
    """Arrow makes a double of a decimal that meets one: digits would go. Raises `DataError`."""
    for field in joined:
        kinds = [one.field(field.name).type for one in schemas if field.name in one.names]
        if pa.types.is_floating(field.type) and any(map(pa.types.is_decimal, kinds)):
            raise DataError(f"column {field.name} has decimals and floats: give it one of them")


def _with(table: Any, schema: Any) -> Any:
    """The table with all columns of a schema."""
    count = table.num_rows
    columns = [
        table.column(field.name) if field.name in table.schema.names else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(columns, names=schema.names).cast(schema)
