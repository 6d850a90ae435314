"""How wide a command's `--help` is.

argparse asks `shutil` for it, at every option that is added and whether or not help is wanted, and that brings in three
compression libraries. To ask the system costs nothing.
"""

import os
import sys
from argparse import HelpFormatter

_USUAL_COLUMNS = 80
_MARGIN = 2


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
