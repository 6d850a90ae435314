"""What must be given, what may not be given together, and how a tool says so and ends."""

import sys
from collections.abc import Callable, Collection, Iterable

from ottla.base.errors import OttlaError
from ottla.cli.failures import FAILURES
from ottla.cli.java_names import java_error_text
from ottla.cli.options.help_text import help_text
from ottla.cli.options.reading import Given, MissingOption, OptionError, read
from ottla.cli.options.table import Program, version_line
from ottla.cli.sessions import limit_time


class UsageError(OttlaError):
    """The options do not go together: reported with the tool's help, as Kafka does."""


def require(given: Given, *names: str) -> None:
    for name in names:
        if name not in given:
            raise UsageError(f'Missing required argument "[{name}]"')


def refuse(given: Given, used: str, invalid: Iterable[str]) -> None:
    """If `used` is given, none of `invalid` may be."""
    if used in given:
        for name in invalid:
            if name in given:
                raise UsageError(f'Option "[{used}]" can\'t be used with option "[{name}]"')


def refuse_combination(given: Given, used: Collection[str], invalid: Iterable[str], advice: str = "") -> None:
    """If all of `used` are given, none of `invalid` may be."""
    if all(name in given for name in used):
        for name in invalid:
            if name in given:
                combination = ", ".join(f"[{name}]" for name in used)
                more = f" {advice}" if advice else ""
                raise UsageError(f'Option combination "[{combination}]" can\'t be used with option "[{name}]"{more}')


def run_program(
    program: Program,
    words: list[str],
    run: Callable[[Given], int],
    *,
    before_failure: str = "",
    help_with_options: bool = False,
) -> int:
    """Reads the command line and runs the tool; answers what all tools do alike. Returns the exit status, Kafka's.

    Help is printed on standard error and ends with 1, also when it was asked for: Kafka's tools take it as a
    failure to say what is to be done. What keeps the tool from its work is one line on standard error. Some tools
    print their help after an option that they do not know, too.
    """
    try:
        given = read(program, words)
        if given.is_empty or "help" in given:
            raise UsageError(program.summary)
        if "version" in given:
            print(version_line())
            return 0
        limit_time(given.timeout_s())
        return run(given)
    except (UsageError, MissingOption) as problem:
        print(f"{problem}\n{help_text(program)}", file=sys.stderr)
    except BrokenPipeError:
        raise  # the reader of our output has left: no failure of ours
    except OptionError as problem:
        more = f"\n{help_text(program)}" if help_with_options else ""
        print(f"{before_failure}{problem}{more}", file=sys.stderr)
    except FAILURES as problem:
        print(f"{before_failure}{java_error_text(problem)}", file=sys.stderr)
    return 1
