"""What the database says of its types and tables, and the queries that ask it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

TYPES: Final = """
SELECT t.oid::bigint, t.typname, t.typtype::text, CASE WHEN t.typcategory = 'A' THEN t.typelem::bigint ELSE 0 END,
       t.typbasetype::bigint, t.typtypmod,
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
        FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid)
FROM pg_catalog.pg_type t
"""

TABLES: Final = """
SELECT n.nspname::text, c.relname::text, c.oid::bigint, c.relreplident::text, c.relkind::text,
       c.reltuples::float8, c.relispartition
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY 1, 2
"""

COLUMNS: Final = """
SELECT a.attname::text, a.atttypid::bigint, a.atttypmod, a.attnotnull, pg_catalog.pg_get_expr(d.adbin, d.adrelid),
       a.attgenerated::text
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

# The primary key; without one, the first unique index of whole columns that has no condition, as Debezium takes it.
KEYS: Final = """
SELECT i.indisprimary,
       (SELECT array_agg(a.attname::text ORDER BY k.n)
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE k.n <= i.indnkeyatts)
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::oid AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid
ORDER BY i.indisprimary DESC, c.relname
"""


@dataclass(frozen=True, slots=True)
class PgType:
    """`element` is of arrays, `base` and `modifier` of domains, `labels` of enums."""

    oid: int
    name: str
    kind: str = "b"
    element: int = 0
    base: int = 0
    modifier: int = -1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a database, by number."""

    by_oid: Mapping[int, PgType]

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]]) -> "Types":
        return cls(
            {row[0]: PgType(row[0], row[1], row[2], row[3], row[4], row[5], tuple(row[6] or ())) for row in rows}
        )

    def __contains__(self, oid: int) -> bool:
        return oid in self.by_oid

    def root(self, oid: int, modifier: int) -> tuple[PgType, int]:
        """What a domain is made of, and the modifier that counts; of any other type, itself."""
        found = self.by_oid.get(oid) or PgType(oid, f"type {oid}", "?")
        while found.kind == "d":
            if modifier == -1:
                modifier = found.modifier
            found = self.by_oid.get(found.base) or PgType(found.base, f"type {found.base}", "?")
        return found, modifier


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    name: str
    type_oid: int
    modifier: int = -1
    required: bool = False
    default: str | None = None
    """The expression, as PostgreSQL shows it."""
    generated: bool = False

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "ColumnFacts":
        generated = row[5] != ""
        return cls(row[0], row[1], row[2], row[3], None if generated else row[4], generated)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """`key` are the columns of the primary key, or of a unique index, in the index's order."""

    schema: str
    name: str
    columns: tuple[ColumnFacts, ...]
    key: tuple[str, ...] = ()
    has_primary_key: bool = False
    identity: str = "d"
    oid: int = 0
    by_name: dict[str, ColumnFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name.update({column.name: column for column in self.columns})

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


def key_of(rows: Sequence[Sequence[Any]], columns: Sequence[ColumnFacts]) -> tuple[tuple[str, ...], bool]:
    """The columns of the key, and whether they are the primary key's. Of a unique index all must be required."""
    required = {column.name for column in columns if column.required}
    for is_primary, names in rows:
        if is_primary:
            return tuple(names), True
        if names and set(names) <= required:
            return tuple(names), False
    return (), False
