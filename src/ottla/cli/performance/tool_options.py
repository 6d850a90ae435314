"""Command lines of these tools, and settings of clients. Bad usage is exit code 1, and so is help, as in Kafka."""

import os
import sys
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, NoReturn

from ottla.base.errors import OttlaError
from ottla.cli.help_format import help_formatter
from ottla.cli.options.table import SERVERS, SERVERS_VARIABLE

FAILURES = (OttlaError, OSError, TimeoutError)
KAFKA_VERSION = "4.3.1"


class ToolParser(ArgumentParser):
    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=help_formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.add_argument("-h", "--help", action=_Help, help="print how the tool is used")

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")

    def add_version(self) -> None:
        from ottla import __version__

        self.add_argument("--version", action="version", version=f"{KAFKA_VERSION} (ottla {__version__})")

    def add_servers(self, *, required: bool = True) -> None:
        """Where nobody names brokers, those of the environment."""
        self.add_argument(
            "-b",
            f"--{SERVERS}",
            required=required and SERVERS_VARIABLE not in os.environ,
            default=os.environ.get(SERVERS_VARIABLE),
            metavar="HOST:PORT,…",
            help=f"the brokers (default: ${SERVERS_VARIABLE})",
        )


class _Help(Action):
    """Kafka's tools take a question for help as a failure to say what is to be done."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None, **_: Any) -> None:
        super().__init__(option_strings, dest=SUPPRESS, default=SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        parser.print_help()
        parser.exit(1)


def tell_troubles(timeout_s: float | None = None) -> None:
    """Of clients that cannot reach a broker."""
    from ottla.cli.notices import tell_troubles as tell

    tell(timeout_s)


def key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"{text!r}: it must be name=value")
    return key, value


def positive(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r}: it must be a whole number above 0")


def deprecated(options: Namespace, old: str, new: str, attribute: str) -> None:
    """Says so when an old name of an option was used."""
    if getattr(options, attribute):
        print(f"Option {old} has been deprecated and will be removed in a future version. Use {new} instead.")


def complain(program: str, problem: BaseException) -> int:
    if isinstance(problem, BrokenPipeError):
        raise problem  # the reader of our output has left: no failure of ours
    print(f"{program}: {str(problem) or type(problem).__name__}", file=sys.stderr)
    return 1


def print_metrics(group: str, client_id: str, metrics: dict[str, float]) -> None:
    """In Kafka's columns. The names are Kafka's too, as far as our clients count the same."""
    names = {f"{group}:{name}:{{client-id={client_id}}}": value for name, value in sorted(metrics.items())}
    width = max(map(len, names), default=0)
    print(f"\n{'Metric Name':{width}} Value")
    for name, value in names.items():
        print(f"{name:{width}} : {value:.3f}")
