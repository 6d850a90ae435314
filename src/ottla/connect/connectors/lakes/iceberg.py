"""Into Iceberg: rows and positions in one commit to the catalogue.

Positions are a property of the snapshot, `ottla.connect.positions.CONNECTOR`: all partitions of the connector, as JSON.
The newest snapshot that has it counts, so others may commit in between, and a table that is rolled back has the rows
and the positions of that snapshot. A property of the table says that there were positions: if the snapshots that had
them are expired, the connector refuses to begin anew by itself.

A put is one transaction: new columns, keys deleted, rows appended. The catalogue commits it only upon the snapshot that
it was made from. pyiceberg would try again upon another one; that is switched off, since then positions would not be
looked at.

A delete is copy-on-write: files that have a key are written anew without it.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.ids import TopicPartition
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Text
from ottla.connect.connectors.allowed_paths import allowed_path
from ottla.connect.connectors.known_options import refuse_unknown
from ottla.connect.connectors.lakes.changes import Changes, Words
from ottla.connect.connectors.lakes.columns import LakeTypes, fits, in_columns
from ottla.connect.connectors.lakes.sink import (
    LakeRules,
    LakeSink,
    LakeTable,
    Overtaken,
    checked_table,
    missing_columns,
    no_table,
    wrong_type,
)
from ottla.connect.connectors.web.addresses import check_host
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption, read_options

try:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import (
        CommitFailedException,
        CommitStateUnknownException,
        NoSuchTableError,
        ServerError,
        ServiceUnavailableError,
        TableAlreadyExistsError,
    )
    from pyiceberg.expressions import In
    from pyiceberg.table import Table
except ImportError as error:
    raise ImportError("Iceberg needs pyiceberg: pip install 'ottla[iceberg]'") from error

_CATALOGUE: Final = "iceberg.catalog."
_JAVA: Final = ("catalog-impl", "io-impl", "client.factory")
_SERVERS: Final = ("rest", "glue", "hive", "dynamodb", "bigquery")
"""Catalogues whose warehouse is a name that the server knows."""
_SECRETS: Final = ("secret", "token", "password", "credential", "oauth2")
_PASSES: Final = ("connection", "timed out", "timeout", "locked", "refused", "503", "slow down", "network")
_PLACE: Final = "__ottla_place"
_UPSERTS: Final = "iceberg.tables.upsert-mode-enabled=true"
_WORDS: Final = Words(
    _UPSERTS,
    _UPSERTS,
    "iceberg.tables.default-id-columns",
    "iceberg.tables.auto-create-enabled=true",
    "iceberg.tables.evolve-schema-enabled=true",
)
_TYPES: Final = LakeTypes(small_integers=False, times=True)


class IcebergSink(LakeSink):
    types = _TYPES
    words = _WORDS
    settings = (
        Text(
            "iceberg.tables",
            REQUIRED,
            ANY,
            HIGH,
            "The table, `NAMESPACE.TABLE`, with ${topic} for the topic.",
            acted_on=True,
        ),
        Text("iceberg.catalog", "iceberg", ANY, MEDIUM, "The catalogue's name.", acted_on=True),
        Flag(
            "iceberg.tables.upsert-mode-enabled",
            False,
            ANY,
            MEDIUM,
            "Whether a record replaces the row of its key, and a tombstone or a delete removes it.",
            acted_on=True,
        ),
        List(
            "iceberg.tables.default-id-columns",
            (),
            ANY,
            MEDIUM,
            "The fields of the record's key; all, by default.",
            acted_on=True,
        ),
        Flag(
            "iceberg.tables.auto-create-enabled",
            False,
            ANY,
            MEDIUM,
            "Whether a table that is not there is made.",
            acted_on=True,
        ),
        Flag(
            "iceberg.tables.evolve-schema-enabled",
            False,
            ANY,
            MEDIUM,
            "Whether columns that are not there are added, and numbers made wider.",
            acted_on=True,
        ),
        Flag("iceberg.tables.schema-force-optional", True, ANY, LOW, "Accepted; columns that are made may be null."),
        Text("iceberg.control.topic", None, ANY, LOW, "Accepted; there is one writer, which needs no such topic."),
        Text("iceberg.control.group-id-prefix", None, ANY, LOW, "Accepted, for the same reason."),
        Int("iceberg.control.commit.interval-ms", 300_000, ANY, LOW, "Accepted; every batch is a commit."),
        Int("iceberg.control.commit.timeout-ms", 30_000, ANY, LOW, "Accepted; there is one writer."),
        Int("iceberg.control.commit.threads", 1, ANY, LOW, "Accepted; there is one writer."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> LakeRules:
        own = {name: text for name, text in config.items() if not name.startswith(_CATALOGUE)}
        refuse_unknown("IcebergSinkConnector", cls.settings, own)
        options = read_options(cls.settings, own)
        table = options.text("iceberg.tables")
        if "," in table:
            raise InvalidOption(f"iceberg.tables={table}: name one table, or one for each topic with ${{topic}}")
        if "." not in table.strip("."):
            raise InvalidOption(f"iceberg.tables={table}: name it with its namespace, NAMESPACE.TABLE")
        for name in _catalogue(config):
            if name in _JAVA or name.startswith("py-"):
                raise InvalidOption(
                    f"{_CATALOGUE}{name}: classes are not loaded by name here; set {_CATALOGUE}type to rest, sql, glue "
                    "or hive"
                )
        if not _catalogue(config):
            raise InvalidOption(f"{_CATALOGUE}type: say which catalogue it is: rest, sql, glue or hive")
        upserts = options.flag("iceberg.tables.upsert-mode-enabled")
        return LakeRules(
            checked_table("iceberg.tables", table, config),
            upserts,
            upserts,
            options.list("iceberg.tables.default-id-columns"),
            options.flag("iceberg.tables.auto-create-enabled"),
            options.flag("iceberg.tables.evolve-schema-enabled"),
        )

    def connect(self) -> None:
        given = _catalogue(self.config)
        self._allow_paths(given)
        for address in (text for name, text in given.items() if name == "uri" or name.endswith((".endpoint", "-uri"))):
            if host := urlsplit(address).hostname:
                check_host(host)
        self._errors = _Errors(given)
        name = read_options(self.settings, self.config).text("iceberg.catalog")
        try:
            self._catalogue = load_catalog(name, **given)
        except ConnectError:
            raise
        except Exception as error:  # each kind of catalogue raises its own
            raise self._errors.of(
                f"{_CATALOGUE}type={given.get('type')}: the catalogue cannot be opened", error
            ) from error

    def _allow_paths(self, given: Mapping[str, str]) -> None:
        """A catalogue in a file, and files in a local directory, are held to the worker's allowed paths."""
        uri = given.get("uri", "")
        if uri.startswith("sqlite:") and uri.partition("///")[2] not in ("", ":memory:"):
            allowed_path(uri.partition("///")[2], self.context.worker, f"{_CATALOGUE}uri")
        place = given.get("warehouse", "")
        is_name = given.get("type") in _SERVERS and not place.startswith("file:")
        if place and not is_name and urlsplit(place).scheme in ("", "file"):
            allowed_path(place.removeprefix("file://"), self.context.worker, f"{_CATALOGUE}warehouse")

    def open_table(self, name: str) -> LakeTable:
        return _IcebergTable(self._catalogue, name, self.context.connector, self._rules, self._errors)


def _catalogue(config: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(_CATALOGUE): text for name, text in config.items() if name.startswith(_CATALOGUE)}


class _Errors:
    """What the library raises, as ours, without secrets."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._hidden = [text for name, text in given.items() if any(word in name for word in _SECRETS) and text]
        self._hidden += [word for text in given.values() if "://" in text and (word := urlsplit(text).password)]

    def of(self, place: str, error: BaseException) -> ConnectError:
        text = str(error).partition("\n")[0]
        for one in self._hidden:
            text = text.replace(one, "[hidden]")
        passes = isinstance(error, ServerError | ServiceUnavailableError | CommitStateUnknownException)
        passes = passes or any(word in text.lower() for word in _PASSES)
        return (Retriable if passes else ConnectError)(f"{place}: {text}")


class _IcebergTable(LakeTable):
    def __init__(self, catalogue: Any, name: str, connector: str, rules: LakeRules, errors: _Errors) -> None:
        self.place = f"Iceberg table {name}"
        self._catalogue, self._name, self._rules, self._errors = catalogue, name, rules, errors
        self._property = f"ottla.connect.positions.{connector}"
        self._table: Any = None

    def refresh(self) -> bool:
        try:
            self._table = self._catalogue.load_table(self._name)
        except NoSuchTableError:
            self._table = None
            return False
        except Exception as error:  # each kind of catalogue raises its own
            raise self._errors.of(self.place, error) from error
        return True

    # Positions.

    def positions(self) -> dict[TopicPartition, int]:
        snapshot = self._table.current_snapshot()
        while snapshot is not None:
            said = None if snapshot.summary is None else snapshot.summary.get(self._property)
            if said is not None:
                return {
                    TopicPartition(topic, int(partition)): position
                    for topic, partitions in json.loads(said).items()
                    for partition, position in partitions.items()
                }
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        if self._property in self._table.properties:
            raise ConnectError(
                f"{self.place}: the snapshots that said where this connector was are expired. Remove the table's "
                f"property {self._property} to begin where the group is, and know that rows may be there twice"
            )
        return {}

    def _said(self, positions: Mapping[TopicPartition, int]) -> dict[str, str]:
        said: dict[str, dict[str, int]] = {}
        for (topic, partition), position in sorted({**self.positions(), **positions}.items()):
            said.setdefault(topic, {})[str(partition)] = position
        return {self._property: json.dumps(said)}

    # Rows.

    def write(self, changes: Changes | None, positions: Mapping[TopicPartition, int]) -> None:
        try:
            if self._table is None:
                self._create(changes)
            self._transaction(changes, positions)
        except (CommitFailedException, TableAlreadyExistsError) as error:
            raise Overtaken from error
        except ConnectError:
            raise
        except Exception as error:  # each kind of catalogue and of storage raises its own
            raise self._errors.of(self.place, error) from error

    def _create(self, changes: Changes | None) -> None:
        if not self._rules.creates:
            raise no_table(self.place, _WORDS)
        assert changes is not None and changes.rows is not None
        self._catalogue.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        schema = pa.schema([field.with_nullable(True) for field in changes.rows.schema])
        self._table = self._catalogue.create_table(self._name, schema=schema)

    def _transaction(self, changes: Changes | None, positions: Mapping[TopicPartition, int]) -> None:
        said = self._said(positions)
        transaction = _tried_once(self._table).transaction()
        self._make_room(transaction, changes)
        schema = transaction.table_metadata.schema().as_arrow()
        rows = schema.empty_table()
        if changes is not None:
            if changes.rows is not None:
                rows = in_columns(changes.rows, schema)
            if changes.keys and self._table.current_snapshot() is not None:
                parts = [part.select(changes.keys) for part in (changes.rows, changes.gone) if part is not None]
                keys = pa.concat_tables([in_columns(part, _of(schema, changes.keys)) for part in parts])
                rows = pa.concat_tables([self._delete(transaction, keys, schema), rows])
        if self._property not in self._table.properties:
            transaction.set_properties({self._property: "in the snapshots"})
        transaction.append(rows, snapshot_properties=said)
        transaction.commit_transaction()

    def _make_room(self, transaction: Any, changes: Changes | None) -> None:
        """New columns, and wider ones, in the same transaction."""
        there = {field.name: field.type for field in transaction.table_metadata.schema().as_arrow()}
        more: dict[str, Any] = {}
        for part in () if changes is None else (changes.rows, changes.gone):
            for field in () if part is None else part.schema:
                known = there.get(field.name)
                if known is None or not fits(field.type, known):
                    if known is not None and not (self._rules.evolves and fits(known, field.type)):
                        raise wrong_type(self.place, field.name, known, field.type)
                    more[field.name] = field
        if not more:
            return
        if not self._rules.evolves:
            raise missing_columns(self.place, list(more), _WORDS)
        with transaction.update_schema() as update:
            update.union_by_name(pa.schema([pa.field(name, one.type) for name, one in more.items()]))

    def _delete(self, transaction: Any, keys: Any, schema: Any) -> Any:
        """Deletes rows with these keys. Gives back rows that went with them and are to stay.

        Of a key of several columns, a filter with each key in it takes minutes for thousands of keys. So rows go whose
        columns all have a value that one of the keys has there, and those with none of the keys come back."""
        names = keys.column_names
        which = reduce(and_, [In(name, keys.column(name).unique().to_pylist()) for name in names])
        stay = schema.empty_table()
        if len(names) > 1:
            found = in_columns(self._table.scan(row_filter=which).to_arrow(), schema)
            places = found.select(names).append_column(_PLACE, pa.array(range(found.num_rows), pa.int64()))
            stay = found.take(places.join(keys, keys=names, join_type="left anti").column(_PLACE))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no row has such a key is as good
            transaction.delete(which)
        return stay


def _of(schema: Any, names: Sequence[str]) -> Any:
    return pa.schema([schema.field(name) for name in names])


def _tried_once(table: Any) -> Any:
    """The same table, whose commits are tried once: upon another snapshot, positions must be looked at first."""
    metadata = table.metadata.model_copy(
        update={"properties": {**table.metadata.properties, "commit.retry.num-retries": "0"}}
    )
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog, table.config)
