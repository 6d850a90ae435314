"""Why a query ended, out of what Spark says: the error of Python if there is one, and no stack of Java."""

_FRAME = "\tat "
_TRACEBACK = "Traceback (most recent call last)"


def without_java(text: str) -> list[str]:
    """The lines of a message or a log that are not frames of Java's stack, and not empty."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith((_FRAME, "\t... "))]


def reason(exception: str) -> str:
    """One line. Of several tracebacks of Python the last counts: the others are what led to it."""
    lines = without_java(exception)
    tracebacks = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    if not tracebacks:
        return lines[0] if lines else "Spark does not say why"
    report = lines[tracebacks[-1] + 1 :]
    # Python indents the frames of its stack; the error is the first line after them, more lines may follow.
    return next((line for line in report if not line.startswith(" ")), lines[0])
