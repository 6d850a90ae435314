"""Writes docs/settings.md, the reference of all settings, from the rows of `ottla.config.tables`.

python tools/settings_reference.py           writes the page
python tools/settings_reference.py --check   says whether it is fresh, and writes nothing
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ottla.config.scopes import Scope, sections
from ottla.config.setting import REQUIRED, Dynamic, Setting
from ottla.config.values import Type, value_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

INTRODUCTION = """\
# Settings

Every setting of Apache Kafka 4.3 has a row here, under Kafka's own name; a few that Kafka does not have begin with
`ottla.`. Those with a **tick** are acted on today; the
others are accepted, so that an existing file works, and warned about once by name at start. A key that is not here is
warned about too. A value that does not parse or is out of bounds stops the start, with a message that names key, value
and bound; all such messages come at once.

Files are Java properties: `#` and `!` begin comments, `=`, `:` or a blank ends the key, a `\\` at the end of a line
continues it, and `\\uXXXX` is a character by number; the bytes are ISO 8859-1. Names of Java classes are kept as text.
`${provider:path:key}` references are not replaced.

*Dynamic* says whether a running node takes a new value: for one broker, or for the whole cluster. A topic's settings
can all be changed while it is in use; a client's are read once. The [schema registry](registry.md)'s settings have the
names of Confluent's.

This page is written by `make generate` from the tables in `src/ottla/config/tables`.
"""

CHAPTERS = {
    "Broker": (Scope.BROKER, slice(None)),
    "Topic": (Scope.TOPIC, slice(None)),
    "Producer": (Scope.PRODUCER, slice(1)),
    "Consumer": (Scope.CONSUMER, slice(1)),
    "Admin": (Scope.ADMIN, slice(1)),
    # What follows a client's own section is the same for all three.
    "Every client": (Scope.ADMIN, slice(1, None)),
    "Schema registry": (Scope.REGISTRY, slice(None)),
}


def page() -> str:
    return "\n".join(lines())


def lines() -> Iterator[str]:
    yield INTRODUCTION
    for title, (scope, part) in CHAPTERS.items():
        yield f"- [{title}](#{title.lower().replace(' ', '-')}): {count(rows for _, rows in sections(scope)[part])}"
    for title, (scope, part) in CHAPTERS.items():
        yield f"\n## {title}"
        chapter = sections(scope)[part]
        for section, rows in chapter:
            if len(chapter) > 1:
                yield f"\n### {title}: {section if section.isupper() else section[0].lower() + section[1:]}"
            yield "\n| | setting | what it does | type | default | allowed | importance | dynamic |"
            yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
            yield from (table_line(scope, row) for row in rows)
    yield ""


def count(tables: Iterable[tuple[Setting, ...]]) -> str:
    rows = [row for table in tables for row in table]
    return f"{len(rows)} settings, {sum(row.acted_on for row in rows)} acted on"


def table_line(scope: Scope, row: Setting) -> str:
    tick = "✓" if row.acted_on else ""
    cells = [
        tick,
        f"`{row.name}`",
        what_it_does(row),
        row.type.value,
        default_cell(row),
        str(row.bound) if row.bound is not None else "",
        row.importance.value,
        dynamic_cell(scope, row),
    ]
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def what_it_does(row: Setting) -> str:
    if not row.synonyms:
        return row.doc
    names = ", then ".join(f"`{synonym.name}`" for synonym in row.synonyms)
    return f"{row.doc} Default from the broker's {names}."


def default_cell(row: Setting) -> str:
    if row.default is REQUIRED:
        return "*required*"
    if row.default is None:
        return ""
    if row.default in ("", ()):
        return "*empty*"
    if row.type is Type.LONG and row.default == (1 << 63) - 1:
        return "no limit"
    return f"`{value_text(row.default)}`"


def dynamic_cell(scope: Scope, row: Setting) -> str:
    return row.dynamic.value if scope is Scope.BROKER and row.dynamic is not Dynamic.READ_ONLY else ""


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
