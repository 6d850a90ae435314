"""A node that waits for its quorum says so now and then: to an operator it would look as if it hung.

It waits for as long as it takes, as the other controllers may be started later.
"""

import logging
from typing import Final

from ottla.base.ports import Timer, Timers
from ottla.machines.raft.events import NOBODY
from ottla.machines.raft.machine import Raft

_log = logging.getLogger(__name__)
_FIRST_S: Final = 10.0
_AGAIN_S: Final = 60.0


def tell_of_waiting(timers: Timers, raft: Raft) -> Timer:
    """Until the timer is cancelled."""
    return timers.every(_AGAIN_S, lambda: _log.warning("not ready yet: %s", _wanted(raft)), first_s=_FIRST_S)


def _wanted(raft: Raft) -> str:
    if raft.leader_id != NOBODY:
        return (
            f"this node has not caught up with controller {raft.leader_id}, the last that it knows to lead the quorum"
        )
    voters = ", ".join(map(str, raft.voters.ids)) or "that it does not know yet"
    place = "" if raft.is_voter else f" (node {raft.me.key.id}, with this directory, is none of them)"
    settings = "controller.quorum.voters or controller.quorum.bootstrap.servers"
    return f"nobody leads the metadata quorum of voters {voters}{place}: a majority must be up; see {settings}"
