r"""Regular expressions that clients send: `ClientPattern`. Matched in time that is linear in the text, by RE2.

A client's expression is matched on the node's own thread, so it must not be able to hold the node up, as expressions
that backtrack can. Apache Kafka uses RE2/J for the same reason; RE2 is its model, and the two read the same syntax.
Where they differ:

    a{999999999}      a count of nine digits is an error in RE2/J and plain text in RE2: here it is an error
    (a{1000}){1000}   RE2/J makes a million steps of it; in RE2 it is an error, as all is that needs more memory than
                      `MOST_MEMORY_BYTES`
    five thousand (   a stack overflow in RE2/J; RE2 reads them
    (?P<n>a)(?P<n>b)  groups of one name are an error in RE2/J. Nobody asks here what a group has matched.
"""

import re
from typing import Final

from ottla.base.errors import RemoteProtocolError

MOST_MEMORY_BYTES: Final = 1 << 20
"""For an expression, and for what is worked out while it is matched. Any list of names that fits a request fits."""

_HUGE_COUNT: Final = re.compile(r"\{(?:[0-9]*,)?[1-9][0-9]{8,}[,}]")


class InvalidPattern(RemoteProtocolError):
    """An expression that is none, or that is too large. The message says why."""


class ClientPattern:
    """`matches` takes the whole text. Raises `InvalidPattern`."""

    __slots__ = ("_compiled",)

    def __init__(self, expression: str) -> None:
        import re2  # a node that no client has sent an expression does without the library

        if _HUGE_COUNT.search(expression):
            raise InvalidPattern("invalid repeat count")
        options = re2.Options()
        options.max_mem = MOST_MEMORY_BYTES
        options.log_errors = False
        options.never_capture = True
        try:
            self._compiled = re2.compile(expression, options)
        except re2.error as problem:
            raise InvalidPattern(problem.args[0].decode(errors="replace").partition(":")[0]) from None
        finally:
            re2.purge()  # The library would keep the last 128 expressions.

    def matches(self, text: str) -> bool:
        return self._compiled.fullmatch(text.encode()) is not None
