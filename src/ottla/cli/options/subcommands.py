"""Command lines of the tools with sub-commands. Kafka's are read by argparse4j, whose model is Python's argparse.

So argparse reads ours; only what it says when a command line is wrong is put into the words of argparse4j, and the exit
status is 1. Long options may be abbreviated, as Kafka's may.
"""

import os
import re
import sys
from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Sequence
from typing import Final, NoReturn

from ottla.base.errors import OttlaError
from ottla.cli.failures import FAILURES
from ottla.cli.java_names import java_error_text
from ottla.cli.options.table import SERVERS, SERVERS_VARIABLE, TIMEOUT, version_line
from ottla.cli.sessions import limit_time

_FIRST_MISSING: Final = re.compile(r"the following arguments are required: ([^,]+).*")
_OF_THE_COMMAND: Final = re.compile(r"^argument (?:\{.*\}|COMMAND): ")
_NOT_AN_INTEGER: Final = re.compile(r"(argument .*): invalid (?:int|integer) value: ('.*')")


class CommandLineError(OttlaError):
    """The command line cannot be read."""

    def __init__(self, message: str, usage: str = "") -> None:
        super().__init__(message)
        self.usage = usage


class ToolParser(ArgumentParser):
    """Raises `CommandLineError` instead of ending the process."""

    def __init__(self, prog: str, description: str | None = None, **more: object) -> None:
        super().__init__(prog=prog, description=description, formatter_class=_Help)
        self._optionals.title = "optional arguments"

    def error(self, message: str) -> NoReturn:
        raise CommandLineError(_in_kafkas_words(message), self.format_usage())


class _Help(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=25, width=77)


def add_connection(
    parser: ArgumentParser, *, required: bool = True, short: bool = False, controllers: bool = True
) -> None:
    """The options by which brokers or, instead, controllers are named. Brokers may be in the environment."""
    group = parser.add_mutually_exclusive_group(required=required and SERVERS_VARIABLE not in os.environ)
    group.add_argument("-b", f"--{SERVERS}", help="brokers to begin with: host:port, with commas between")
    if controllers:
        names = ("-C",) if short else ()
        group.add_argument("--bootstrap-controller", *names, help="the same, of the quorum's controllers")
    parser.add_argument(f"--{TIMEOUT.name}", type=_seconds, metavar="SECONDS", help=TIMEOUT.help)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise ValueError(text)
    return seconds


def _use_environment(options: Namespace) -> None:
    limit_time(getattr(options, "timeout", None))
    names = [name for name in ("bootstrap_server", "bootstrap_controller") if hasattr(options, name)]
    if names and not any(getattr(options, name) for name in names):
        options.bootstrap_server = os.environ.get(SERVERS_VARIABLE)


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document; an option that Kafka's own tool lacks"
    )


def integer(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def print_version(parser: ArgumentParser, *names: str) -> None:
    parser.add_argument(*names, action="version", version=version_line(), help="print the version and exit")


def _in_kafkas_words(message: str) -> str:
    if missing := _FIRST_MISSING.fullmatch(message):
        name = missing[1]
        return f"argument {name} is required" if name.startswith("-") else "too few arguments"
    if wrong := _NOT_AN_INTEGER.fullmatch(message):
        return f'{wrong[1]}: could not convert {wrong[2]} to Integer (For input string: "{wrong[2][1:-1]}")'
    if message.startswith("unrecognized arguments: "):
        return f"unrecognized arguments: '{message.removeprefix('unrecognized arguments: ')}'"
    return _OF_THE_COMMAND.sub("", message)


def run_command(parser: ToolParser, words: Sequence[str], *, help_status: int = 1, with_usage: bool = True) -> int:
    """Runs the function that the sub-command has set as `action`. Returns the exit status, Kafka's.

    Most tools end with 1 after printing help, and say how they are used when the command line is wrong.
    """
    try:
        options = parser.parse_args(words)
        _use_environment(options)
        status: int = options.action(options)
        return status
    except CommandLineError as problem:
        if with_usage:
            print(f"{problem.usage}{parser.prog}: error: {problem}", file=sys.stderr)
        else:
            print(f"Command line error: {problem}. Type --help for help.", file=sys.stderr)
    except SystemExit as ended:  # help or the version was asked for
        asks_for_help = any(word in ("-h", "--help") for word in words)
        return help_status if asks_for_help else int(ended.code or 0)
    except BrokenPipeError:
        raise  # the reader of our output has left: no failure of ours
    except FAILURES as problem:
        print(java_error_text(problem), file=sys.stderr)
    return 1
