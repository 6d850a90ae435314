"""What a look at records finds. Levels:

damage   what was stored is not what is there, or readers would get something wrong
note     as a crash leaves it; the node mends it by itself when it starts
"""

from collections.abc import Callable
from typing import Final, NamedTuple

DAMAGE: Final = "damage"
NOTE: Final = "note"
LEVELS: Final = (DAMAGE, NOTE)

RESTORE: Final = (
    "With other replicas: stop the node, move the partition's directory away, and start it; it fetches all records. "
    "Without: keep a copy of the file; a node that starts after a crash cuts the log here."
)
REBUILD: Final = "Stop the node, delete this file, and start it: the index is rebuilt from the log."
FORGET: Final = "Stop the node, delete this file, and start it: what it says is found again in the log."
BY_ITSELF: Final = "Nothing to do: the node that starts here mends it."
COMPARE: Final = (
    "Look at both with `ottla dump-log`; a wrong replica is copied again from the leader when you move it away."
)


class Problem(NamedTuple):
    """`file` is a path, or the broker that was asked; `position` and `offset` are -1 where there is none."""

    level: str
    partition: str
    file: str
    position: int
    offset: int
    what: str
    advice: str = ""


Tell = Callable[[Problem], None]
