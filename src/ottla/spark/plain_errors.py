"""Errors that a user made are reported in their own words, without the lines of the program above them.

Spark runs planning in a Python process of its own and prints what comes out of it with its traceback: twenty lines of
PySpark and ours above the one that names the option. It leaves them out where its environment says so, and looks there
when the error has come out. So the error says it, on its way. That process only plans data sources: the user's own
functions run in others, and keep their tracebacks. So do faults that are not errors of ours.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from ottla.base.errors import OttlaError

_HIDES: Final = "SPARK_HIDE_TRACEBACK"
_BY_US: Final = "ottla"

F = TypeVar("F", bound=Callable[..., Any])


def tells_plainly(method: F) -> F:
    """For what Spark calls while it plans. What it raises is as it was."""

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        if os.environ.get(_HIDES) == _BY_US:  # of an error before, in this process
            del os.environ[_HIDES]
        try:
            return method(*arguments, **named)
        except OttlaError:
            os.environ.setdefault(_HIDES, _BY_US)
            raise

    return call  # type: ignore[return-value]  # the same, around it
