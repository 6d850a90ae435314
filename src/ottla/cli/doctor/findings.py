"""What a check finds. Levels, from good to bad:

ok         looked at, and as it should be
note       worth knowing; nothing to do
warning    the node starts, and something will be slow, refused or lost
problem    the node does not start, or not for long
"""

from typing import Final, NamedTuple

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
PROBLEM: Final = "problem"
LEVELS: Final = (OK, NOTE, WARNING, PROBLEM)


class Finding(NamedTuple):
    area: str
    level: str
    what: str
    advice: str = ""
    """What to do, if there is something to do."""
