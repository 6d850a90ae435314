"""Who may do what: rights on subjects, and on what is global.

A right is `READ` or `WRITE` on a subject, or on the configuration. Writing takes reading along. What somebody may not
read is not listed, and an id is shown if one of its subjects may be read.
"""

from enum import Enum
from typing import Final, Protocol

from ottla.registry.refusals import forbidden
from ottla.registry.subjects import is_global_context


class Right(Enum):
    READ = "Read"
    WRITE = "Write"


class Access(Protocol):
    """What one principal may do."""

    def may(self, right: Right, subject: str) -> bool: ...

    def may_configure(self, right: Right) -> bool:
        """What is global: config and mode of no subject, contexts."""
        ...


class Everything:
    """Without security everybody may do everything."""

    def may(self, right: Right, subject: str) -> bool:
        return True

    def may_configure(self, right: Right) -> bool:
        return True


EVERYTHING: Final = Everything()


def require(access: Access, right: Right, subject: str | None) -> None:
    """None is what is global, and so is the context of all contexts. Raises `Refused` (40301)."""
    is_global = subject is None or is_global_context(subject)
    if not (access.may_configure(right) if is_global or subject is None else access.may(right, subject)):
        raise forbidden()
