"""What a topic may be called, and which names have a meaning of their own."""

import re

from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode

CLUSTER_METADATA = "__cluster_metadata"
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
LONGEST = 249


def name_problem(name: str) -> str | None:
    """What is wrong with a name in Kafka's words, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST}"
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_name(name: str) -> Refusal | None:
    problem = name_problem(name)
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}") if problem else None
