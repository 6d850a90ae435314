"""What went wrong in a process of Spark's, on its way through Java to the engine.

Java hands over the text of a Python exception, in a text of its own. So a failure is packed into one word of that text,
which the engine finds: whether a new try may help, and the trace, without the connector's secrets. A failure without
that word is one of Spark or of the machine (a process was killed, memory ran out): a new try may help.
"""

import base64
import json
import re
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar

from ottla.base.errors import OttlaError
from ottla.client.errors import InvalidProducerEpoch, KafkaError, ProducerFenced
from ottla.connect.engine.run import Run
from ottla.connect.errors import Retriable

_WORD: Final = "ottla-connect-failure:"
_FOUND: Final = re.compile(rf"{_WORD}([A-Za-z0-9_=-]+)")
_MOST_TRACE: Final = 32_000

F = TypeVar("F", bound=Callable[..., Any])


class Failure(NamedTuple):
    retriable: bool
    trace: str


class RunFailed(OttlaError):
    """A failure in one word. What it was is in it."""


class TakenOver(Retriable):
    """Another start of this connector has written meanwhile. This one ends; a new start continues from there."""


def packed(error: BaseException, run: Run) -> RunFailed:
    if isinstance(error, RunFailed):
        return error
    trace = run.without_secrets("".join(traceback.format_exception(error)))[-_MOST_TRACE:]
    content = json.dumps({"retriable": is_retriable(error), "trace": trace}).encode()
    return RunFailed(_WORD + base64.urlsafe_b64encode(content).decode())


def is_retriable(error: BaseException) -> bool:
    if isinstance(error, KafkaError):
        # Fenced: an older start of ours was late, and has ended by now; or another worker has taken over.
        return error.retriable or isinstance(error, ProducerFenced | InvalidProducerEpoch)
    return isinstance(error, Retriable | ConnectionError | TimeoutError)


def failure_in(text: str) -> Failure:
    """What a text of Java's tells. Without a failure of ours in it, it is Spark's own: its first line says what
    happened, and is put last, as in a trace of Python's.
    """
    found = _FOUND.search(text)
    if found is None:
        return Failure(True, f"{text[:_MOST_TRACE].rstrip()}\n{text.strip().partition(chr(10))[0]}")
    content = json.loads(base64.urlsafe_b64decode(found[1]))
    return Failure(content["retriable"], content["trace"])


def packs_failures(method: F) -> F:
    """For methods that Spark calls, of objects that have a `run`."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except Exception as error:
            raise packed(error, self.run) from None

    return call  # type: ignore[return-value]  # the same, around it
