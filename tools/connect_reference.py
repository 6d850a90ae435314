"""Writes docs/connect.md: what there is of Kafka Connect, from the tables in `ottla.connect`; and the options at the
end of connectors' own pages.

python tools/connect_reference.py           writes the pages
"""

from collections.abc import Iterator
from pathlib import Path

from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import value_text
from ottla.connect.connectors.postgres import options as postgres
from ottla.connect.converters import by_name
from ottla.connect.transforms import by_name as transforms

PAGE = Path(__file__).resolve().parent.parent / "docs" / "connect.md"

OPTIONS_OF = {"postgresql.md": postgres.ROWS}
"""Pages under docs/connect that end with the options of their connector, behind this heading."""
OPTIONS_HEADING = "## Options\n\n"

INTRODUCTION = """\
# Connect: converters and transforms

What Kafka Connect's own converters, transforms and predicates do, Debezium's transforms of change events, and
Confluent's AvroConverter, ProtobufConverter and JsonSchemaConverter, as a library on Arrow (`ottla[arrow]`). A class
that is not here is refused by name. Class names, options, bytes and messages are those of Apache Kafka 4.3.1, Debezium
3.6 and Confluent (7.7, Protobuf 7.0), held by tests beside their jars. JsonSchemaConverter's jar is not where they are:
it is held to a table of cases, and the texts of its schemas have another order of members;
[decision 23](decisions/0023-connect-on-columns.md) says how records are kept.

This page is written by `make generate` from the tables in `src/ottla/connect`.

## What is different, on purpose

| where | Kafka, Debezium, Confluent | here |
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
| Cast, of a whole Decimal, Date, Time or Timestamp | no converter can write it | is written |
| TimestampConverter, of more days than a Date can have | loses bits | refused |
| TimestampConverter, of a text without `format` | fails with a NullPointerException | refused, with what to set |
| dates as text: years of two digits | 80 years back to 20 ahead | 1950 to 2049 |
| dates as text: names of zones; weeks, when read | all; understood | UTC and GMT; refused |
| an unknown `timestamp.format` | fails for each record | refused at once |
| InsertHeader, an array or map of several types | cannot be written | the text |
| InsertHeader, an empty array or map, or one of nulls | cannot be written | one of texts |
| MaskField, of a tombstone | fails | it stays a tombstone |
| MaskField, of a decimal with a scale | fails | zero, or the replacement, with that scale |
| SetSchemaMetadata, of anything but a struct | fails | the schema is renamed |
| ReplaceField, renaming a field that is not there to one that is | fails | nothing is renamed |
| ReplaceField, two members of one name without a schema | one of them is lost | refused, as with a schema |
| ExtractNewRecordState, `add.fields` from a block that the envelope has not | fails | left out |
| ExtractNewRecordState, `drop.fields` of a tombstone without a schema | fails | nothing is dropped |
| EventRouter, a payload that is a JSON array, with `table.expand.json.payload` | cannot be written | stays a text |
| EventRouter, ByLogicalTableRouter: a schema of several topics | has the first one's name | each has its own |
| Debezium's transforms, an option that they do not have | ignored | refused by name |
| AvroConverter, reading the default of an array, map or struct, entries that may be null | lost | read |
| AvroConverter, ProtobufConverter, JsonSchemaConverter, a schema that is within itself | read | refused |
| ProtobufConverter, oneofs and `optional`, with `optional.for.nullables` or `wrapper.for.nullables` | may fail | read |
| ProtobufConverter, decimals in maps | written without their scale, and not read | written with it, and read |
| ProtobufConverter, a value that is a Decimal, Date, Time or Timestamp alone | written, and not read | refused |
| JsonSchemaConverter, fields without `connect.index` | in the order of a hash table | in their own order |
| JsonSchemaConverter, a decimal in a `oneOf` | read only if it is a number with a fraction | read, if it is a number |
| Confluent's converters, an option that they do not have | ignored | refused by name |
| regular expressions: classes within classes, `\\p{…}` | understood | refused when they are configured |
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
    yield "\n## Transforms\n"
    yield "Those with `$Key` and `$Value` are for that part of a record. `predicate` and `negate` choose records.\n"
    seen: set[str] = set()
    for row in (*transforms.TRANSFORMS, *transforms.PREDICATES):
        name = row.class_name.partition("$")[0]
        if name in seen:
            continue
        seen.add(name)
        both = " (`$Key`, `$Value`)" if "$" in row.class_name else ""
        yield f"### {name.rpartition('.')[2]}\n\n`{name}`{both}: {' '.join(row.doc.split())}\n"
        if row.options:
            yield from table(row.options)
            yield ""


def table(rows: tuple[Setting, ...]) -> Iterator[str]:
    yield "| option | what it does | type | default | allowed |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        cells = (
            f"`{row.name}`",
            row.doc,
            row.type.value,
            default_cell(row),
            str(row.bound) if row.bound is not None else "",
        )
        yield "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def default_cell(row: Setting) -> str:
    if row.default is REQUIRED:
        return "*required*"
    if row.default is None:
        return ""
    return "*empty*" if row.default in ("", ()) else f"`{value_text(row.default)}`"


def connector_page(text: str, rows: tuple[Setting, ...]) -> str:
    """A connector's page with its options, as they are now, at the end."""
    before = text[: text.index(OPTIONS_HEADING) + len(OPTIONS_HEADING)]
    said = ["| option | what it does | default | allowed |", "| --- | --- | --- | --- |"]
    for row in rows:
        bound = str(row.bound) if row.bound is not None else ""
        if bound == "not empty":
            bound = ""
        said.append(f"| `{row.name}` | {row.doc} | {default_cell(row)} | {bound} |")
    return before + "\n".join(said) + "\n"


def main() -> None:
    PAGE.write_text(page())
    for name, rows in OPTIONS_OF.items():
        path = PAGE.parent / "connect" / name
        path.write_text(connector_page(path.read_text(), rows))


if __name__ == "__main__":
    main()
