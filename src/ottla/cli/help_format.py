"""How wide a command's `--help` is, and in which words.

argparse asks `shutil` for the width, at every option that is added and whether or not help is wanted, and that brings
in three compression libraries. To ask the system costs nothing. For its own words argparse looks for translations, of
which Python brings none, and loads the names of all languages first: 0.4 MB, and a millisecond of every command.
"""

import argparse
import os
import sys
from argparse import HelpFormatter
from typing import Any

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
