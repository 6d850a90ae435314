"""How wide a command's `--help` is, in which words, and what is said of an option that there is not.

argparse asks `shutil` for the width, at every option that is added and whether or not help is wanted, and that brings
in three compression libraries. To ask the system costs nothing. For its own words argparse looks for translations, of
which Python brings none, and loads the names of all languages first: 0.4 MB, and a millisecond of every command.
"""

import argparse
import os
import re
import sys
from argparse import HelpFormatter
from typing import Any, NoReturn

from ottla.cli.text_tables import did_you_mean

_USUAL_COLUMNS = 80
_MARGIN = 2

_untranslated: Any = argparse
_untranslated._ = str
_untranslated.ngettext = lambda one, many, count: one if count == 1 else many


def help_formatter(prog: str) -> HelpFormatter:
    """To be given to a parser as its `formatter_class`."""
    return HelpFormatter(prog, width=_columns() - _MARGIN)


def _columns() -> int:
    """COLUMNS if it is set, or the terminal's, or 80: as `shutil.get_terminal_size` has it."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _USUAL_COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _USUAL_COLUMNS


class CommandParser(argparse.ArgumentParser):
    """The parser of a command of `ottla`: no abbreviations, and a mistyped option is reported with the nearest one."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{"formatter_class": help_formatter, "allow_abbrev": False, **named})

    def error(self, message: str) -> NoReturn:
        super().error(message + self._nearest(message))

    def _nearest(self, message: str) -> str:
        if message.startswith(_UNKNOWN):
            return did_you_mean(message.removeprefix(_UNKNOWN).split()[0].partition("=")[0], self._options())
        if (chosen := _WRONG_CHOICE.match(message)) is not None:
            return did_you_mean(chosen[1], chosen[2].replace("'", "").split(", "))
        return ""

    def _options(self) -> list[str]:
        """Its own, and those of its sub-commands."""
        found = [name for name in self._option_string_actions if name.startswith("--")]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    found += parser._options()
        return found


_UNKNOWN = "unrecognized arguments: "
_WRONG_CHOICE = re.compile(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)")
