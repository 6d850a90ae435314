"""Warnings on a terminal: a line for people, who have no use for where in our code it was said."""

import sys
import warnings
from typing import TextIO


def print_warnings(word: str) -> None:
    """Has warnings of clients printed as lines that begin with this word."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        print(f"{word}: {message}", file=file or sys.stderr)

    warnings.showwarning = show
