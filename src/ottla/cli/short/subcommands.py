"""What the short commands have in common: sub-commands with a cluster, tables, `--json`, names that are not there."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain
from ottla.cli.text_tables import did_you_mean
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

Action = Callable[["Admin", Namespace], int | None]


class NotThere(OttlaError):
    """A name that the cluster does not have."""


class ShortCommand:
    """`ottla NAME`: a parser of sub-commands, each with its action."""

    def __init__(self, name: str, description: str) -> None:
        self._name = name
        self._parser = CommandParser(prog=f"ottla {name}", description=description)
        self._commands = self._parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)

    @property
    def parser(self) -> ArgumentParser:
        return self._parser

    def add(self, name: str, action: Action, help: str, *, prints: bool = False) -> ArgumentParser:
        """`prints`: whether there is something that may be printed as JSON."""
        command = self._commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        add_connection(command)
        if prints:
            command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(action=action, command=name)
        return command

    def run(self, arguments: list[str] | None) -> int:
        options = self._parser.parse_args(arguments)
        try:
            with Cluster.of(options, Scope.ADMIN).admin() as admin:
                return options.action(admin, options) or 0
        except FAILURES as problem:
            return complain(f"ottla {self._name} {options.command}", problem)


def key_value(text: str) -> tuple[str, str]:
    from argparse import ArgumentTypeError

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ArgumentTypeError(f"{text!r}: it must be KEY=VALUE")
    return key.strip(), value.strip()


def print_json(what: Any) -> None:
    import json

    print(json.dumps(what, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Texts to the left, numbers to the right."""
    cells = [list(columns), *([_cell(one) for one in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    to_the_right = [
        len(cells) > 1 and all(row[column].replace(",", "").isdecimal() or row[column] == "-" for row in cells[1:])
        for column in range(len(columns))
    ]
    for row in cells:
        line = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, to_the_right, strict=True)
        )
        print("  ".join(line).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple | list | set | frozenset):
        return ",".join(map(str, value)) or "-"
    return str(value)


def require_names(what: str, names: Iterable[str], existing: Iterable[str]) -> None:
    there = set(existing)
    for name in names:
        if name not in there:
            raise NotThere(f"there is no {what} {name}{did_you_mean(name, sorted(there))}")
