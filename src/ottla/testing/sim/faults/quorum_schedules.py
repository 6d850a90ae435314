"""Schedules for the metadata quorum: what a vote, an epoch and a change of the voters are for.

Each is what one rule of Raft keeps from doing harm. Without that rule, records that were committed are lost.
"""

from ottla.machines.raft.machine import Raft, Role
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.schedule import Schedule, Steps, Until
from ottla.wire.messages import RemoveRaftVoterRequest

_FOUND_MS = 5_000
_ELECTED_MS = 12_000
_NOTICED_MS = 700
"""What is committed has been looked at by then."""
_VOTERS = 5
_REMOVE_VERSION = 0


def _raft(machine: Machine) -> Raft | None:
    return machine.metadata.raft if machine.metadata is not None else None


def _end(machine: Machine) -> int:
    """Where its metadata log ends; -1 while it does not run."""
    raft = _raft(machine)
    return -1 if raft is None else raft.log_end.offset


def _leads(machine: Machine) -> bool:
    raft = _raft(machine)
    return raft is not None and raft.is_leader


def _role(machine: Machine) -> Role | None:
    raft = _raft(machine)
    return None if raft is None else raft.role


def figure_8(play: Schedule) -> Steps:
    """Figure 8 of the Raft paper: a majority has a record of an older epoch, and a later leader takes it back.

    The first leader and one voter get a record. Another leads then, is alone with the record that its epoch begins
    with, and dies. One of the first two leads again: a majority gets the old record from it, and nobody the one of its
    new epoch. It dies, and the other one leads: what it has is of a later epoch than that old record.
    """
    first = play.leader()
    others = [one for one in play.controllers if one is not first]
    if first is None or len(others) < _VOTERS - 1 or any(_role(one) is not Role.FOLLOWER for one in others):
        return
    play.chance.shuffle(others)
    second, rest = others[0], others[1:]
    play.cut([first, second], rest)
    committed = first.metadata.committed_offset if first.metadata is not None else 0
    yield Until(
        "two alone have more than the others",
        lambda: _end(second) == _end(first) > max(committed, *map(_end, rest)),
        _FOUND_MS,
    )
    old_end = _end(first)
    play.note(f"nodes {first.node_id} and {second.node_id} alone have the metadata before {old_end}")
    if not (play.kill(first) and play.kill(second)):
        return
    yield Until("another leads", lambda: any(map(_leads, rest)), _ELECTED_MS)
    later = next(filter(_leads, rest))
    voters = [one for one in rest if one is not later]
    alone = play.cut([later], voters)
    raft = _raft(later)
    yield Until("its epoch has a record", lambda: raft is not None and raft.log_end.epoch == raft.epoch, _FOUND_MS)
    if not play.kill(later):
        return
    play.mend(alone)
    play.mend([link for link in play.links if link not in alone])
    play.start(first)
    play.start(second)
    yield Until("one of the first two leads again", lambda: _leads(first) or _leads(second), _ELECTED_MS)
    again, spare = (first, second) if _leads(first) else (second, first)
    if not play.kill(spare):
        return
    play.note(f"node {again.node_id} leads, node {later.node_id} has the record of a later epoch than {old_end} is of")
    for voter in sorted(voters, key=lambda one: -_end(one)):
        yield Until("a voter has the old record", lambda voter=voter: _end(voter) >= old_end, _FOUND_MS)  # type: ignore[misc]
        play.cut([again], [voter], both_ways=False)

    def majority_has_it() -> bool:
        raft = _raft(again)
        progress = raft.progress if raft is not None else None
        return progress is not None and all(progress.end_of(one.node_id) >= old_end for one in voters)

    yield Until("a majority has it", majority_has_it, _FOUND_MS)
    play.note(f"nodes {[one.node_id for one in (again, *voters)]} have the metadata before {old_end}")
    yield _NOTICED_MS
    if not play.kill(again):
        return
    play.start(later)
    yield Until("the one in between leads again", lambda: _leads(later), _ELECTED_MS)
    yield _NOTICED_MS


def lost_epoch(play: Schedule) -> Steps:
    """The first leader of a new cluster is cut off when its controller has decided, and before that is committed."""

    def has_decided() -> bool:
        leader = play.leader()
        metadata = leader.metadata if leader is not None else None
        return metadata is not None and metadata.is_active and metadata.committed_offset < metadata.log_end_offset

    yield Until("the first leader has decided", has_decided, _ELECTED_MS)
    leader = play.leader()
    assert leader is not None
    play.note(f"node {leader.node_id} is cut off in epoch {leader.metadata.raft.epoch if leader.metadata else 0}")
    play.cut([leader], [one for one in play.nemesis.machines if one is not leader])
    yield Until("another leads", lambda: play.leader() not in (leader, None), _ELECTED_MS)
    yield _NOTICED_MS


def split_vote(play: Schedule) -> Steps:
    """Two stand in one epoch. A voter dies when it has voted for the one, and is back when the other asks it."""
    while True:
        leader = play.leader()
        if leader is None or not play.kill(leader):
            return
        others = [one for one in play.controllers if one is not leader]
        found: list[Machine] = []

        def has_voted(others: list[Machine] = others, found: list[Machine] = found) -> bool:
            found[:] = [one for one in others if _is_asked_by_another(one, others)]
            return bool(found) or any(map(_leads, others))

        yield Until("somebody has voted", has_voted, _ELECTED_MS)
        if found:
            voter = found[0]
            raft = _raft(voter)
            assert raft is not None and raft.voted_for is not None
            play.note(f"node {voter.node_id} has voted for node {raft.voted_for.id} in epoch {raft.epoch}")
            stand = {voter.node_id, *(one.node_id for one in others if _role(one) is Role.CANDIDATE)}
            play.cut([one for one in others if one.node_id not in stand], others)
            if not play.kill(voter):
                return
            play.start(voter)
            yield _NOTICED_MS
            play.mend(list(play.links))
        play.start(leader)
        yield Until("somebody leads", lambda: play.leader() is not None, _ELECTED_MS)
        yield _NOTICED_MS


def _is_asked_by_another(voter: Machine, others: list[Machine]) -> bool:
    """Whether it has given its vote, durably, and another candidate of the epoch waits for what it answers."""
    raft = _raft(voter)
    if voter.metadata is None or raft is None or raft.voted_for in (None, raft.me.key) or raft.leader_id >= 0:
        return False
    if voter.metadata.quorum.is_saving:
        return False
    for other in others:
        rival = _raft(other)
        if rival is None or rival.role is not Role.CANDIDATE or rival.epoch != raft.epoch:
            continue
        is_answered = voter.node_id in rival._granted | rival._refused
        if rival.me.key != raft.voted_for and not is_answered and rival.log_end >= raft.log_end:
            return True
    return False


def voters_at_once(play: Schedule) -> Steps:
    """The leader is left with one voter of five, and is asked to remove two of the others at once.

    With the first change uncommitted, the second would make two voters a majority, while three elect another leader.
    """
    leader = play.leader()
    others = [one for one in play.controllers if one is not leader]
    raft = _raft(leader) if leader is not None else None
    if leader is None or raft is None or len(raft.voters) < _VOTERS:
        return
    play.chance.shuffle(others)
    near, far = others[0], others[1:]
    play.cut([leader, near], far)
    for one in far[:2]:
        voter = raft.voters.get(one.node_id)
        if voter is None:
            return
        key = voter.key
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=key.id, voter_directory_id=key.directory_id)
        play.ask(leader, request, _REMOVE_VERSION)
    yield Until("another leads", lambda: any(map(_leads, far)), _ELECTED_MS)
    yield _NOTICED_MS
