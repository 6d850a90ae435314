"""`kafka-metadata-shell` and `ottla metadata-shell`: looks around in a cluster's metadata, from its files.

Commands, layout and output are those of Apache Kafka 4.3.1. Where it differs:

- `--directory DIR` reads a data directory, or `__cluster_metadata-0` in one: the newest snapshot and the log after it.
- What is wrong with a file is one line on stderr, not a stack trace; the exit code is 1 as in Kafka.
- Default entities of quotas have names of their own (`image_tree`); Kafka's `find` and `tree` mix them up.
- `/local/version` is this program's.
- Help is in our words; Tab completes paths where Python has readline.
"""

import os
import sys
from argparse import ArgumentParser
from typing import NoReturn

from ottla.base.errors import OttlaError
from ottla.cli.help_format import help_formatter
from ottla.cli.metadata_shell.commands import COMMANDS, Leave, Session, completions

PROMPT = ">> "


class _Parser(ArgumentParser):
    """Bad usage is exit code 1, as in Kafka."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    from ottla.cli.metadata_shell.image_tree import tree_of
    from ottla.cli.metadata_shell.reading import read_metadata

    try:
        if not options.command:
            print("Loading...")
        root = tree_of(read_metadata(options.directory or options.snapshot))
    except (OttlaError, OSError) as problem:
        print(f"kafka-metadata-shell: {problem}", file=sys.stderr)
        return 1
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else None
    session = Session(root, print, columns=columns, is_prompt=not options.command)
    if options.command:
        session.run(options.command)
    else:
        _talk(session)
    return 0


def argument_parser() -> ArgumentParser:
    parser = _Parser(
        prog="kafka-metadata-shell",
        description="Looks around in the metadata of a cluster: its topics, brokers, settings, quotas and users.",
        epilog="Commands: " + ", ".join(COMMANDS) + ". Without one, the shell asks for them.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--snapshot", "-s", metavar="FILE", help="a snapshot, or a segment of the metadata log")
    source.add_argument("--directory", "-d", metavar="DIR", help="a data directory: its newest snapshot and its log")
    parser.add_argument("command", nargs="*", help="a command to run, with its arguments")
    return parser


def _talk(session: Session) -> None:
    _set_up_line_editing(session)
    print("Starting...\n[ Kafka Metadata Shell ]", flush=True)
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        if line.strip():
            session.history.append(line)
        try:
            session.run(_words(line))
        except Leave:
            return


def _words(line: str) -> list[str]:
    """A quote that is not closed goes to the end of the line."""
    from shlex import split

    for closed in (line, line + '"', line + "'"):
        try:
            return split(closed)
        except ValueError:
            continue
    return line.split()


def _set_up_line_editing(session: Session) -> None:
    """Arrow keys and Tab, for a person at a terminal whose Python has readline."""
    if not sys.stdin.isatty():
        return
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        is_command = not readline.get_line_buffer()[: readline.get_begidx()].strip()
        choices = [name for name in COMMANDS if name.startswith(text)] if is_command else completions(session, text)
        return choices[state] if state < len(choices) else None

    readline.set_completer_delims(" \t")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


if __name__ == "__main__":
    sys.exit(main())
