"""Adding, removing and updating voters while the quorum runs (KIP-853).

The leader checks what is asked, writes the new voters into the log, and answers when their majority has them. A replica
that is to be a voter must support kraft.version and must have caught up: a voter that is far behind would hold up what
is committed. One change is under way at a time.

Static voters (kraft.version 0) become data when kraft.version is raised: the leader writes the level and the voters in
one batch. It has to know their directories for that, which they tell each new leader (`voter_place`).
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.base.ports import Clock, Timers
from ottla.machines.metadata.image.features import KRAFT_VERSION
from ottla.machines.raft.events import ShutdownRequested
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import DYNAMIC_VOTERS, STATIC_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet
from ottla.records.control import KraftMessage
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.quorum.voter_place import VoterPlace
from ottla.wire import messages
from ottla.wire.errors import ErrorCode

_CAUGHT_UP_WITHIN_MS: Final = 3_600_000

Done = Callable[[ErrorCode, str | None], None]
"""Hears what came of it, and why."""


class ChangeableLog(Protocol):
    raft: Raft
    quorum: QuorumDriver
    committed_offset: int

    @property
    def is_active(self) -> bool: ...

    def write_control(
        self, control: list[KraftMessage], then: Callable[[], None], failed: Callable[[ErrorCode], None]
    ) -> None:
        """`then` is called when they are committed; voters by their own majority."""


class VoterChanges:
    """Of one replica; only the leader changes voters."""

    def __init__(self, log: ChangeableLog, network: QuorumNetwork, clock: Clock) -> None:
        self._log = log
        self._network = network
        self._clock = clock
        self._described: dict[int, Voter] = {}
        """Static voters as they describe themselves to the leader of this epoch."""
        self._described_in_epoch = -1

    def keep_place(self, timers: Timers, *, joins: bool) -> None:
        """From here on this controller is a voter as it is today, and with `joins` becomes one."""
        period_ms = self._network.config.place_period_ms
        VoterPlace(self._log, self._network, timers, joins=joins, period_ms=period_ms).start()

    def add(self, request: messages.AddRaftVoterRequest, done: Done) -> None:
        raft = self._log.raft
        voter = Voter(ReplicaKey(request.voter_id, request.voter_directory_id), _endpoints(request.listeners))
        if refused := self._refused(request):
            done(*refused)
        elif raft.voters.get(voter.key.id) is not None:
            done(ErrorCode.DUPLICATE_VOTER, f"The voter id for {voter.key.id} is already part of the set of voters.")
        elif voter.endpoint(self._network.listener) is None:
            done(ErrorCode.INVALID_REQUEST, "Add voter request didn't include the endpoint of the default listener.")
        else:
            self._network.ask_for_versions(
                voter,
                lambda response: self._on_versions(voter, response, done, waits=request.ack_when_committed),
                lambda _error: done(ErrorCode.REQUEST_TIMED_OUT, "The new voter did not answer."),
            )

    def _on_versions(self, voter: Voter, response: Any, done: Done, *, waits: bool) -> None:
        raft = self._log.raft
        versions = {one.name: (one.min_version, one.max_version) for one in response.supported_features}
        lowest, highest = versions.get(KRAFT_VERSION, (0, 0))
        if not raft.is_leader:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        elif not lowest <= raft.kraft_version <= highest:
            done(ErrorCode.INVALID_REQUEST, f"The new voter supports kraft.version {lowest} to {highest}.")
        elif not self._is_caught_up(voter.key):
            done(ErrorCode.REQUEST_TIMED_OUT, f"The new voter {voter.key.id} has not caught up with the leader.")
        elif raft.voters.get(voter.key.id) is not None:
            done(ErrorCode.DUPLICATE_VOTER, None)
        else:
            added = Voter(voter.key, voter.endpoints, (lowest, highest))
            self._change(raft.voters.with_voter(added), done, waits=waits)

    def remove(self, request: messages.RemoveRaftVoterRequest, done: Done) -> None:
        raft, key = self._log.raft, ReplicaKey(request.voter_id, request.voter_directory_id)
        if refused := self._refused(request):
            done(*refused)
        elif not raft.voters.has(key):
            done(ErrorCode.VOTER_NOT_FOUND, f"Cannot remove voter {key.id}: it is not in the set of voters.")
        elif len(raft.voters) == 1:
            done(ErrorCode.INVALID_REQUEST, "The last voter cannot be removed.")
        else:
            self._change(raft.voters.without(key), done)

    def update(self, request: messages.UpdateRaftVoterRequest, done: Done) -> None:
        """A voter that listens elsewhere now, or supports other versions, says so itself.

        It is answered at once. Apache Kafka's controllers ask one thing at a time: one that waited for this to be
        committed would not fetch meanwhile, and it may be needed to commit it.
        """
        raft, feature = self._log.raft, request.k_raft_version_feature
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        versions = feature.min_supported_version, feature.max_supported_version
        voter = Voter(key, _endpoints(request.listeners), versions)
        if refused := self._refused(request, from_version=STATIC_VOTERS):
            done(*refused)
        elif request.current_leader_epoch != raft.epoch:
            is_older = request.current_leader_epoch < raft.epoch
            done(ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH, None)
        elif not raft.voters.has(key):
            done(ErrorCode.VOTER_NOT_FOUND, None)
        elif voter.endpoint(self._network.listener) is None or not versions[0] <= raft.kraft_version <= versions[1]:
            done(ErrorCode.INVALID_REQUEST, None)
        elif raft.kraft_version < DYNAMIC_VOTERS:
            self._descriptions()[key.id] = voter
            done(ErrorCode.NONE, None)
        elif raft.voters.get(key.id) == voter:
            done(ErrorCode.NONE, None)
        else:
            self._change(raft.voters.updated(voter), done, waits=False)

    # Raising kraft.version

    def upgrade_problem(self, level: int) -> str | None:
        """Why kraft.version cannot be raised to `level` now; None if it can."""
        for voter_id, voter in self._voters_as_described().items():
            if voter is None:
                return f"Voter {voter_id} has not reported its directory to this controller yet."
            lowest, highest = voter.kraft_versions
            if not lowest <= level <= highest:
                return f"Voter {voter_id} supports kraft.version {lowest} to {highest}."
        return None

    def upgrade(self, level: int, done: Done) -> None:
        """Writes the level, and the voters with their directories, if nothing is in the way."""
        voters = [voter for voter in self._voters_as_described().values() if voter is not None]
        if not self._log.is_active or len(voters) < len(self._log.raft.voters):
            done(ErrorCode.NOT_CONTROLLER, None)
        else:
            self._change(VoterSet(voters), done, kraft_version=level)

    def _voters_as_described(self) -> dict[int, Voter | None]:
        raft, described = self._log.raft, self._descriptions()
        me = raft.me
        return {voter_id: me if voter_id == me.key.id else described.get(voter_id) for voter_id in raft.voters.ids}

    def _descriptions(self) -> dict[int, Voter]:
        """What voters said to a leader of an older epoch may not be so any more."""
        epoch = self._log.raft.epoch
        if self._described_in_epoch != epoch:
            self._described_in_epoch = epoch
            self._described.clear()
        return self._described

    # Checks

    def _refused(self, request: Any, *, from_version: int = DYNAMIC_VOTERS) -> tuple[ErrorCode, str | None] | None:
        raft = self._log.raft
        if request.cluster_id is not None and request.cluster_id != self._network.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID, None
        if not raft.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
        if raft.kraft_version < from_version:
            message = f"Cluster doesn't support voter changes: kraft.version is {raft.kraft_version}."
            return ErrorCode.UNSUPPORTED_VERSION, message
        return None

    def _is_caught_up(self, key: ReplicaKey) -> bool:
        progress = self._log.raft.progress
        seen = progress.observers.get(key) if progress is not None else None
        return seen is not None and self._clock.now_ms() - seen.last_caught_up_ms < _CAUGHT_UP_WITHIN_MS

    def _change(self, voters: VoterSet, done: Done, *, kraft_version: int | None = None, waits: bool = True) -> None:
        """One more or one less. The change before must be committed, and a record of this epoch too.

        Without `waits` the asking controller hears of it when it is written.
        """
        log = self._log
        if not log.is_active:
            done(ErrorCode.NOT_CONTROLLER, None)
        elif log.raft.history.offset >= log.committed_offset:
            done(ErrorCode.REQUEST_TIMED_OUT, None)
        else:
            control: list[KraftMessage] = [voters.to_record()]
            if kraft_version is not None:
                control.insert(0, messages.KRaftVersionRecord(k_raft_version=kraft_version))
            if waits:
                log.write_control(control, lambda: done(ErrorCode.NONE, None), lambda error: done(error, None))
            else:
                log.write_control(control, lambda: None, lambda _error: None)
                done(ErrorCode.NONE, None)

    def resign_if_removed(self) -> None:
        """A leader that has removed itself leads until that is committed."""
        raft = self._log.raft
        if raft.is_leader and not raft.is_voter and self._log.committed_offset > raft.history.offset:
            self._log.quorum.step(ShutdownRequested())


def _endpoints(listeners: Any) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)
