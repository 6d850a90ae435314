"""The default of a column in its schema, from the expression that PostgreSQL shows.

As Debezium has it: a literal is the default; what a function gives (`now()`, `nextval(…)`) is not known, and a zero of
the type stands for it, so that a serial has the default 0. Other expressions, and types that are not listed here, give
no default.
"""

import re
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.connectors.postgres.catalogue import PgType
from ottla.connect.connectors.postgres.types import Mapped
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import check, rows_of
from ottla.connect.data.schema import Type
from ottla.connect.errors import DataError

_FUNCTION: Final = re.compile(r"\(?[A-Za-z0-9_.]+\(.*\)|current_(timestamp|time|date)|localtime(stamp)?", re.I | re.S)
_LITERAL: Final = re.compile(r"[BbXx]?'((?:[^']|'')*)'(::.*)?", re.DOTALL)
_ZEROS: Final = {
    "bit": "0",
    "varbit": "0",
    "bool": "f",
    "bpchar": "",
    "varchar": "",
    "text": "",
    "numeric": "0.0",
    "float4": "0",
    "float8": "0",
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "json": "{}",
    "jsonb": "{}",
    "xml": "",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": None,
}
_BOOLEANS: Final = {"true": "t", "false": "f"}


def default_of(expression: str | None, kind: PgType, mapped: Mapped) -> Any:
    """The default as `rows` has values, or None if there is none."""
    is_enum = kind.kind == "e"
    if expression is None or (kind.name not in _ZEROS and not is_enum) or mapped.schema.type is Type.STRUCT:
        return None
    text = _text_of(expression, kind, is_enum=is_enum)
    if text is None:
        return None
    try:
        column = Column(mapped.schema, mapped.read(pa.array([text], pa.string())))
        (value,) = rows_of(column)
        check(mapped.schema, value)
    except (DataError, pa.ArrowInvalid, ValueError, ArithmeticError):
        return None  # an expression that only PostgreSQL can work out
    return value


def _text_of(expression: str, kind: PgType, *, is_enum: bool) -> str | None:
    expression = expression.strip()
    literal = _LITERAL.fullmatch(expression)
    if literal is not None:
        return literal[1].replace("''", "'")
    if is_enum or expression.startswith("NULL::"):
        return None
    if _FUNCTION.match(expression):
        return _ZEROS[kind.name]
    return _BOOLEANS.get(expression, expression)
