"""Into Delta Lake: rows and positions in one commit of the table's log.

A position is an application transaction: its id names connector, topic and partition, its version is the next offset.
Delta refuses a commit if another one with the same id came in between, so of two workers one writes. Which ids there
are, the log cannot be asked for: a property of the table, `ottla.connect.CONNECTOR`, lists topics and partitions. It is
written before the first rows of a new partition, in a commit of its own; alone it means nothing.

An upsert is one merge. A merge that changes no row makes no commit: then an append of no rows has the positions.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf
from ottla.config.setting import ANY, HIGH, MEDIUM, REQUIRED, Flag, List, Text
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
from ottla.connect.connectors.s3 import S3_SETTINGS, S3Access, is_s3
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption, read_options

try:
    import deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
except ImportError as error:
    raise ImportError("Delta Lake needs deltalake: pip install 'ottla[delta]'") from error

_GONE: Final = "__ottla_gone"
_WORDS: Final = Words(
    "insert.mode=upsert",
    "insert.mode=upsert and delete.enabled=true",
    "pk.fields",
    "auto.create=true",
    "auto.evolve=true",
)
_TYPES: Final = LakeTypes(small_integers=True, times=False)
_ONCE: Final = deltalake.CommitProperties(max_commit_retries=0)
"""Upon another version, positions must be looked at first."""


class DeltaSink(LakeSink):
    types = _TYPES
    words = _WORDS
    settings = (
        Text(
            "table.path",
            REQUIRED,
            ANY,
            HIGH,
            "The table: a directory or `s3://BUCKET/PREFIX`, with ${topic} for the topic.",
            acted_on=True,
        ),
        Text("insert.mode", "insert", OneOf(("insert", "upsert")), HIGH, "How rows are written.", acted_on=True),
        Flag(
            "delete.enabled",
            False,
            ANY,
            MEDIUM,
            "Whether a tombstone or a delete deletes; needs insert.mode=upsert.",
            acted_on=True,
        ),
        List("pk.fields", (), ANY, MEDIUM, "The fields of the record's key; all, by default.", acted_on=True),
        Flag("auto.create", True, ANY, MEDIUM, "Whether a table that is not there is made.", acted_on=True),
        Flag("auto.evolve", True, ANY, MEDIUM, "Whether columns that are not there are added.", acted_on=True),
        *S3_SETTINGS,
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> LakeRules:
        refuse_unknown("ottla.connect.DeltaSinkConnector", cls.settings, config)
        options = read_options(cls.settings, config)
        S3Access.of(options)
        upserts = options.text("insert.mode") == "upsert"
        if options.flag("delete.enabled") and not upserts:
            raise InvalidOption("delete.enabled: deletes need insert.mode=upsert")
        return LakeRules(
            checked_table("table.path", options.text("table.path"), config),
            upserts,
            options.flag("delete.enabled"),
            options.list("pk.fields"),
            options.flag("auto.create"),
            options.flag("auto.evolve"),
        )

    def open_table(self, name: str) -> LakeTable:
        access = S3Access.of(self.options())
        if is_s3(name):
            place, options = name.replace("s3a://", "s3://", 1), access.for_delta()
        else:
            place, options = str(allowed_path(name, self.context.worker, "table.path")), {}
        return _DeltaTable(place, options, access, self.context.connector, self._rules)


class _DeltaTable(LakeTable):
    def __init__(self, place: str, options: dict[str, str], access: S3Access, connector: str, rules: LakeRules) -> None:
        self.place, self._options, self._access = place, options, access
        self._connector, self._rules = connector, rules
        self._property = f"ottla.connect.{connector}"
        self._table: Any = None

    def refresh(self) -> bool:
        try:
            if self._table is None:
                self._table = deltalake.DeltaTable(self.place, storage_options=self._options or None)
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            self._table = None
            if not is_s3(self.place):
                self._refuse_other_files()
            return False
        except (DeltaError, OSError, ValueError) as error:
            self._table = None
            raise self._access.failure(self.place, error) from error
        return True

    def _refuse_other_files(self) -> None:
        directory = Path(self.place)
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise ConnectError(f"table.path={self.place} is there and is no Delta table: name another place")

    # Positions.

    def positions(self) -> dict[TopicPartition, int]:
        found = {one: self._table.transaction_version(self._app(one)) for one in self._listed()}
        return {partition: position for partition, position in found.items() if position is not None}

    def _app(self, partition: TopicPartition) -> str:
        return f"ottla-connect/{self._connector}/{partition.topic}/{partition.partition}"

    def _listed(self) -> set[TopicPartition]:
        said = self._table.metadata().configuration.get(self._property)
        if said is None:
            return set()
        return {TopicPartition(topic, one) for topic, partitions in json.loads(said).items() for one in partitions}

    def _list(self, partitions: set[TopicPartition]) -> dict[str, str]:
        said: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            said.setdefault(topic, []).append(partition)
        return {self._property: json.dumps(said)}

    # Rows.

    def write(self, changes: Changes | None, positions: Mapping[TopicPartition, int]) -> None:
        try:
            self._make_room(changes, set(positions))
            schema = pa.schema(self._table.schema().to_arrow())
            nothing = schema.empty_table()
            if changes is None:
                self._append(nothing, positions)
            elif not changes.keys:
                self._append(in_columns(changes.rows, schema), positions)
            else:
                before = self._table.version()
                self._merge(changes, schema, positions)
                if self._table.version() == before:
                    self._append(nothing, positions)
        except CommitFailedError as error:
            raise Overtaken from error
        except (DeltaError, OSError) as error:
            raise self._access.failure(self.place, error) from error

    def _make_room(self, changes: Changes | None, partitions: set[TopicPartition]) -> None:
        wanted = (
            []
            if changes is None
            else [one for part in (changes.rows, changes.gone) if part is not None for one in part.schema]
        )
        if self._table is None:
            if not self._rules.creates:
                raise no_table(self.place, _WORDS)
            assert changes is not None and changes.rows is not None
            self._create(changes.rows.schema, partitions)
        there = {field.name: field.type for field in pa.schema(self._table.schema().to_arrow())}
        for field in wanted:
            if field.name in there and not fits(field.type, there[field.name]):
                raise wrong_type(self.place, field.name, there[field.name], field.type)
        missing = {field.name: field for field in wanted if field.name not in there}
        if missing:
            if not self._rules.evolves:
                raise missing_columns(self.place, list(missing), _WORDS)
            new = deltalake.Schema.from_arrow(pa.schema([pa.field(name, one.type) for name, one in missing.items()]))
            self._table.alter.add_columns(new.fields, commit_properties=_ONCE)
        listed = self._listed()
        if not partitions <= listed:
            self._table.alter.set_table_properties(
                self._list(listed | partitions), raise_if_not_exists=False, commit_properties=_ONCE
            )

    def _create(self, schema: Any, partitions: set[TopicPartition]) -> None:
        try:
            self._table = deltalake.DeltaTable.create(
                self.place,
                pa.schema([field.with_nullable(True) for field in schema]),
                configuration=self._list(partitions),
                storage_options=self._options or None,
                raise_if_key_not_exists=False,
            )
        except DeltaError as error:
            if "already exists" in str(error):
                raise Overtaken from error
            raise

    def _commit(self, positions: Mapping[TopicPartition, int]) -> Any:
        moved = [deltalake.Transaction(self._app(one), position) for one, position in positions.items()]
        return deltalake.CommitProperties(app_transactions=moved, max_commit_retries=0)

    def _append(self, rows: Any, positions: Mapping[TopicPartition, int]) -> None:
        deltalake.write_deltalake(self._table, rows, mode="append", commit_properties=self._commit(positions))
        self._table.update_incremental()

    def _merge(self, changes: Changes, schema: Any, positions: Mapping[TopicPartition, int]) -> None:
        """One merge. A source of the table's own columns, and one that says whether the row is gone."""
        parts = []
        for part, gone in ((changes.rows, False), (changes.gone, True)):
            if part is not None:
                loose = pa.schema([field.with_nullable(True) for field in schema])
                rows = in_columns(part, loose if gone else schema).cast(loose)
                parts.append(rows.append_column(_GONE, pa.array([gone] * rows.num_rows)))
        same = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in changes.keys)
        columns = {_quoted(name): f"s.{_quoted(name)}" for name in schema.names}
        merge = self._table.merge(
            pa.concat_tables(parts), same, source_alias="s", target_alias="t", commit_properties=self._commit(positions)
        )
        if changes.gone is not None:
            merge = merge.when_matched_delete(f"s.{_GONE}")
        merge.when_matched_update(columns).when_not_matched_insert(columns, f"NOT s.{_GONE}").execute()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
