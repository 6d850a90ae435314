"""How a tool says that it could not do its work."""

import sys

from ottla.base.errors import OttlaError
from ottla.client.errors import KafkaError, NoBrokerReachable
from ottla.wire.errors import ErrorCode


class Terse(OttlaError):
    """The tool's own complaint: one line, without a trace."""


FAILURES = (OttlaError, OSError)
"""What a tool tells in a line. Anything else is a fault of ours, and shows where it happened."""


def error_text(problem: BaseException) -> str:
    """What went wrong: a broker's own words as they are, or ours. It takes the place of what was said meanwhile."""
    if (notices := sys.modules.get("ottla.cli.notices")) is not None:
        notices.end_notices()
    match problem:
        case NoBrokerReachable():
            return _unreachable(problem)
        case KafkaError():
            return problem.message or _KAFKAS_WORDS.get(problem.code) or str(problem)
        case OSError(filename=str() as path, strerror=str() as reason):
            return f"{path}: {reason}"
    return str(problem)


_KAFKAS_WORDS: dict[int, str] = {
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
}
"""Of errors that brokers send without a message, what scripts look for."""

_KAFKAS_CALLS = {
    "delete_groups": "deleteConsumerGroups(api=FIND_COORDINATOR)",
    "delete_records": "deleteRecords(api=METADATA)",
    "describe_cluster": "listNodes",
    "describe_consumer_groups": "describeConsumerGroups(api=FIND_COORDINATOR)",
    "describe_delegation_tokens": "describeDelegationToken",
    "list_consumer_groups": "findAllBrokers",
    "list_groups": "findAllBrokers",
    "list_transactions": "listTransactions(api=METADATA)",
}
"""Where Java's admin has another name for what it was about to ask than for the call."""


def _unreachable(problem: NoBrokerReachable) -> str:
    """In the words that scripts look for, with the reason."""
    first, *rest = problem.call.split("_")
    call = _KAFKAS_CALLS.get(problem.call) or first + "".join(word.capitalize() for word in rest)
    before = "Failed to find brokers to send ListGroups: " if call == "findAllBrokers" else ""
    why = f" ({problem.message})" if problem.message else ""
    return f"{before}Timed out waiting for a node assignment. Call: {call}{why}"
