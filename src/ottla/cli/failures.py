"""How a tool says that it could not do its work."""

from ottla.base.errors import OttlaError
from ottla.client.errors import KafkaError


class Terse(OttlaError):
    """The tool's own complaint: one line, without a trace."""


FAILURES = (OttlaError, OSError)
"""What a tool tells in a line. Anything else is a fault of ours, and shows where it happened."""


def told(problem: BaseException) -> str:
    """What went wrong: a broker's own words as they are, or ours."""
    match problem:
        case KafkaError():
            return problem.message or str(problem)
        case OSError(filename=str() as path, strerror=str() as reason):
            return f"{path}: {reason}"
    return str(problem)
