"""What the database says of its tables: columns, types and keys, from `information_schema`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.connect.errors import ConnectError

TABLES: Final = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
ORDER BY 1, 2
"""
COLUMNS: Final = """
SELECT column_name, data_type, column_type, is_nullable, column_default, character_maximum_length, numeric_precision,
       numeric_scale, datetime_precision, character_set_name, extra
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KEYS: Final = """
SELECT index_name, column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0 AND sub_part IS NULL ORDER BY index_name, seq_in_index
"""
PARTS: Final = """
SELECT DISTINCT index_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND (sub_part IS NOT NULL OR column_name IS NULL)
"""
ALTERED: Final = """
SELECT UNIX_TIMESTAMP(create_time) FROM information_schema.tables WHERE table_schema = %s AND table_name = %s
"""
COLLATIONS: Final = "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL"
HAS_NUMBERS: Final = """
SELECT count(*) FROM information_schema.columns WHERE table_schema = 'information_schema'
AND table_name = 'COLLATION_CHARACTER_SET_APPLICABILITY' AND column_name = 'ID'
"""
MARIADB_COLLATIONS: Final = """
SELECT id, character_set_name FROM information_schema.collation_character_set_applicability WHERE id IS NOT NULL
"""

CODECS: Final[Mapping[str, str]] = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "utf-8", "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9", "latin7": "iso8859-13", "greek": "iso8859-7", "hebrew": "iso8859-8", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "cp1250": "cp1250", "cp1251": "cp1251",
    "cp1256": "cp1256", "cp1257": "cp1257", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "koi8r": "koi8-r",
    "koi8u": "koi8-u", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "big5": "big5", "euckr": "euc-kr",
    "ujis": "euc-jp", "eucjpms": "euc-jp", "sjis": "shift-jis", "cp932": "cp932", "tis620": "tis-620",
    "macroman": "mac-roman", "macce": "mac-latin2", "binary": "binary",
}  # fmt: skip
"""Character sets, and what Python calls them."""
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: `name` as `information_schema` has it. `digits` are those of a second, `labels` of an enum or set."""

    name: str
    unsigned: bool = False
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    digits: int | None = None
    labels: tuple[str, ...] = ()
    codec: str = "utf-8"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    name: str
    kind: Kind
    required: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """`key` are the columns of the primary key, or of a unique index without nulls, in the index's order."""

    schema: str
    """The database: its place in topics' names is that of a schema."""
    name: str
    columns: tuple[ColumnFacts, ...]
    key: tuple[str, ...] = ()
    has_primary_key: bool = False
    by_name: dict[str, ColumnFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name.update({column.name: column for column in self.columns})

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


def codec_of(charset: str | None, where: str) -> str:
    """Raises `ConnectError` for a character set that Python does not have."""
    if charset is None:
        return "utf-8"
    found = CODECS.get(charset)
    if found is None:
        raise ConnectError(f"{where} has the character set {charset}, which cannot be read: convert it to utf8mb4")
    return found


def column_of(row: Sequence[Any], table: str, *, is_mariadb: bool) -> ColumnFacts:
    name, data_type, column_type, nullable, default, length, precision, scale, digits, charset, extra = row
    data_type = _ALIASES.get(data_type.lower(), data_type.lower())
    full = column_type.lower()
    labels: tuple[str, ...] = ()
    if data_type in ("enum", "set"):
        labels = tuple(found.replace("''", "'") for found in _LABEL.findall(column_type))
    if data_type == "bit":
        length = precision
    if data_type in ("float", "double") and "," not in full:
        scale = None
    if data_type == "binary":
        length = int(length)
    kind = Kind(
        data_type,
        "unsigned" in full,
        None if length is None else int(length),
        None if precision is None else int(precision),
        None if scale is None else int(scale),
        None if digits is None else int(digits),
        labels,
        codec_of(charset, f"column {name} of {table}"),
    )
    if default is not None and not is_mariadb and "DEFAULT_GENERATED" not in (extra or ""):
        # MySQL shows the text itself, MariaDB the literal.
        is_expression = default.upper().startswith("CURRENT_TIMESTAMP") or default.startswith("b'")
        default = default if is_expression else "'" + default.replace("'", "''") + "'"
    if "GENERATED" in (extra or "").upper().replace("DEFAULT_GENERATED", ""):
        default = None
    return ColumnFacts(name, kind, nullable == "NO", default)


_ALIASES: Final = {"integer": "int", "numeric": "decimal", "real": "double", "geomcollection": "geometrycollection"}


def key_of(
    rows: Sequence[Sequence[Any]], partial: Sequence[str], columns: Sequence[ColumnFacts]
) -> tuple[tuple[str, ...], bool]:
    """The columns of the key, and whether they are the primary key's. Of a unique index all must be required."""
    indexes: dict[str, list[str]] = {}
    for index, column in rows:
        indexes.setdefault(index, []).append(column)
    for name in partial:
        indexes.pop(name, None)
    if "PRIMARY" in indexes:
        return tuple(indexes["PRIMARY"]), True
    required = {column.name for column in columns if column.required}
    for names in indexes.values():
        if set(names) <= required:
            return tuple(names), False
    return (), False
