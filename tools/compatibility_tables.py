"""Writes docs/registry/compatibility.md from the tables of rules that each format is compared by.

python tools/compatibility_tables.py
"""

from collections.abc import Iterator
from pathlib import Path

from ottla.schemas.avro.compatibility import RULES as AVRO
from ottla.schemas.json_schema.compatibility import RULES as JSON_SCHEMA
from ottla.schemas.levels import Level
from ottla.schemas.protobuf.compatibility import RULES as PROTOBUF
from ottla.schemas.schema import Rule

PAGE = Path(__file__).resolve().parent.parent / "docs" / "registry" / "compatibility.md"

INTRODUCTION = """\
# Compatibility

Whether a schema may follow another is asked about a reader and a writer: can data that was written with one be read
with the other? Each format answers by rules, and this page is all of them. A refusal names the rule, the path in the
schema, and the version that it was compared with; `?verbose=true` shows them, and so does `ottla.schemas.levels.check`
without a registry:

```python
from ottla.schemas.levels import Level, check
from ottla.schemas.schema import parse

old = parse("AVRO", '{"type": "record", "name": "Order", "fields": []}')
new = parse("AVRO", '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
verdict = check(Level.BACKWARD, new, [(1, old)])
assert [one.incompatibility.rule.id for one in verdict.refusals] == ["READER_FIELD_MISSING_DEFAULT_VALUE"]
assert verdict.refusals[0].incompatibility.path == "/fields/0"
```

The rules, their names and their messages are those of Confluent's registry 8.1; Avro's are those of Apache Avro 1.12.

## Levels

| level | a new schema must be able to | and is compared with |
| --- | --- | --- |
"""

DIRECTIONS = {
    (False, False): "do nothing",
    (True, False): "read what was written with the old one",
    (False, True): "be read with the old one",
    (True, True): "read, and be read with, the old one",
}

CHAPTERS = (
    (
        "Avro",
        AVRO,
        "Paths are JSON pointers into the reader's schema. Names of records, enums and fixeds are compared without\n"
        "their namespace.",
    ),
    (
        "Protobuf",
        PROTOBUF,
        "Paths are names of messages and numbers of fields. Fields are found by their numbers.",
    ),
    (
        "JSON Schema",
        JSON_SCHEMA,
        "Paths are pointers into the schema. A schema's *content model* is open if `additionalProperties` is absent\n"
        "or true, closed if it is false, and partly open if it is a schema, or if there are `patternProperties`.\n"
        "Under the policy LENIENT (`compatibilityPolicy`) changes of content models are allowed too.",
    ),
)


def page() -> str:
    return "\n".join(lines())


def lines() -> Iterator[str]:
    yield INTRODUCTION.rstrip("\n")
    for level in Level:
        against = (
            ""
            if level is Level.NONE
            else "every version, the newest first"
            if level.is_transitive
            else "the latest version"
        )
        yield f"| {level.name} | {DIRECTIONS[level.reads_the_old, level.is_read_by_the_old]} | {against} |"
    for title, rules, words in CHAPTERS:
        yield f"\n## {title}\n\n{words}"
        yield f"\n### {title}: refused\n"
        yield from table(rule for rule in rules if not rule.compatible)
        yield f"\n### {title}: allowed\n"
        yield from table(rule for rule in rules if rule.compatible)
    yield "\nThis page is written by `make generate` from the tables `RULES` in `src/ottla/schemas`.\n"


def table(rules: Iterator[Rule]) -> Iterator[str]:
    yield "| what changed | why | rule |"
    yield "| --- | --- | --- |"
    for rule in rules:
        lenient = "; LENIENT allows it" if rule.compatible_if_lenient else ""
        yield f"| {rule.change}{lenient} | {rule.why} | `{rule.id}` |"


def main() -> None:
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
