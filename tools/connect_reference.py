"""Writes docs/connect.md: what there is of Kafka Connect, from the tables in `ottla.connect`.

python tools/connect_reference.py           writes the page
"""

from collections.abc import Iterator
from pathlib import Path

from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import value_text
from ottla.connect.converters import by_name

PAGE = Path(__file__).resolve().parent.parent / "docs" / "connect.md"

INTRODUCTION = """\
# Connect: converters

What Kafka Connect's own converters do, as a library on Arrow (`ottla[arrow]`): the bytes of keys and values to columns
with Connect's schemas, and back. A worker that runs connectors is not there yet, nor are the converters that need a
schema registry. Class names, options, bytes and messages are those of Apache Kafka 4.3.1, held by tests beside its
jars; [decision 23](decisions/0023-connect-on-columns.md) says how records are kept.

This page is written by `make generate` from the tables in `src/ottla/connect`.

## What is different from Kafka's, on purpose

| where | Kafka | here |
| --- | --- | --- |
| JSON of another type than its schema's, or out of range | becomes 0 or null, or loses bits | refused, with the field |
| a number without a schema that has more than 64 bits | loses the upper ones | refused |
| a decimal as a number, with fewer digits than its scale | read, and refused when it is written | zeros are added |
| `"NaN"` and `"Infinity"` in JSON, as both write them for a float | read as 0.0 | read as what they say |
| numbers that begin with zeros (`007`) in JSON | read | refused |
| default of a struct in a schema in JSON | refused | read |
| entries of maps, and members of objects without a schema | in the order of a hash table | in their own order |
| last digits of floating-point numbers | of the version of Java | the fewest that are needed, as Java since 19 |
| bytes through StringConverter | the number of a Java object | refused |
| an unknown `converter.encoding` | fails for each record | refused at once |
| nesting of schemas; digits of a decimal | no limit | 100; 20,000 |

"""


def page() -> str:
    return "\n".join(lines())


def lines() -> Iterator[str]:
    yield INTRODUCTION + "## Converters\n"
    yield "Each is known by its class name, by the last word of it, and by that without `Converter`.\n"
    for kind in by_name.KINDS:
        names = ", ".join(f"`{name}`" for name in (kind.class_name, *by_name.aliases(kind.class_name)))
        yield f"- {names}"
    for kind in by_name.KINDS:
        if kind.options:
            yield f"\n### {by_name.aliases(kind.class_name)[0]}\n"
            yield from table(kind.options)
    yield ""


def table(rows: tuple[Setting, ...]) -> Iterator[str]:
    yield "| option | what it does | type | default | allowed |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        cells = (f"`{row.name}`", row.doc, row.type.value, default_cell(row), str(row.bound) if row.bound else "")
        yield "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def default_cell(row: Setting) -> str:
    if row.default is REQUIRED:
        return "*required*"
    if row.default is None:
        return ""
    return "*empty*" if row.default in ("", ()) else f"`{value_text(row.default)}`"


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
