"""What a controller asks of the quorum for itself: to become a voter, or to be known as it is today.

A voter that listens elsewhere now, or supports other versions, tells the leader (UpdateRaftVoter, KIP-853). With static
voters it tells every new leader once: that is how a leader knows the directories that it has to write down when
kraft.version is raised. A controller that is no voter asks to be one if `controller.quorum.auto.join.enable` says so
(KIP-1186). If a voter has its id and another directory, which is what a replaced disk leaves behind, it asks for that
one to be removed first. Without that setting it says once that the vote of its id is another directory's.

It looks now and then, and asks one thing at a time. What is refused is asked again: a controller that has not caught up
yet, for example, is a voter later.
"""

from __future__ import annotations  # messages are made when they are first named

import logging
from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.ids import uuid_text
from ottla.base.ports import Timers
from ottla.machines.raft.machine import Raft, Role
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Voter
from ottla.runtime.apart import ask_surely
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.wire import messages
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

_log = logging.getLogger(__name__)


class PlacedLog(Protocol):
    raft: Raft


class VoterPlace:
    """Of one controller. `joins`: it asks to be a voter."""

    def __init__(self, log: PlacedLog, network: QuorumNetwork, timers: Timers, *, joins: bool, period_ms: int) -> None:
        self._log = log
        self._network = network
        self._timers = timers
        self._joins = joins
        self._period_ms = period_ms
        self._is_asking = False
        self._reported_in_epoch = -1
        self._has_logged = False

    def start(self) -> None:
        self._timers.every(self._period_ms / 1000, self.look)

    def look(self) -> None:
        raft = self._log.raft
        if self._is_asking or raft.role is not Role.FOLLOWER:
            return
        me, known = raft.me, raft.voters.get(raft.me.key.id)
        if raft.is_voter:
            is_known = known == me if raft.kraft_version >= DYNAMIC_VOTERS else self._reported_in_epoch == raft.epoch
            if not is_known:
                self._ask(self._update(raft), self._on_updated(raft.epoch))
        elif self._joins and raft.kraft_version >= DYNAMIC_VOTERS:
            self._ask(self._add(me) if known is None else self._remove(known), self._on_answered)
        elif known is not None and not self._has_logged:
            self._has_logged = True
            _log.warning(
                "this controller has no vote: voter %s has directory.id=%s, and this node's log.dirs have %s; "
                "kafka-metadata-quorum removes the one and adds the other",
                me.key.id,
                uuid_text(known.key.directory_id),
                uuid_text(me.key.directory_id),
            )

    def _ask(self, request: Message, then: Callable[[Any], None]) -> None:
        raft = self._log.raft
        self._is_asking = True

        def answered(response: Any) -> None:
            self._is_asking = False
            then(response)

        def failed(_error: ErrorCode) -> None:
            self._is_asking = False

        def send(then: Then, failed: Failed) -> None:
            if not self._network.ask_leader(raft.leader_id, raft.voters, request, then, failed):
                failed(ErrorCode.NETWORK_EXCEPTION)

        ask_surely(self._timers, send, answered, failed)

    def _on_updated(self, epoch: int) -> Callable[[Any], None]:
        def then(response: Any) -> None:
            if response.error_code == ErrorCode.NONE:
                self._reported_in_epoch = epoch

        return then

    def _on_answered(self, response: Any) -> None:
        if response.error_code:
            error = ErrorCode(response.error_code).name
            _log.info("this controller is not a voter yet: %s", response.error_message or error)

    def _update(self, raft: Raft) -> messages.UpdateRaftVoterRequest:
        me, make = raft.me, messages.UpdateRaftVoterRequest
        lowest, highest = me.kraft_versions
        return make(
            cluster_id=self._network.cluster_id,
            current_leader_epoch=raft.epoch,
            voter_id=me.key.id,
            voter_directory_id=me.key.directory_id,
            listeners=[make.Listener(name=end.listener, host=end.host, port=end.port) for end in me.endpoints],
            k_raft_version_feature=make.KRaftVersionFeature(
                min_supported_version=lowest, max_supported_version=highest
            ),
        )

    def _add(self, me: Voter) -> messages.AddRaftVoterRequest:
        make = messages.AddRaftVoterRequest
        return make(
            cluster_id=self._network.cluster_id,
            timeout_ms=self._network.config.request_timeout_ms,
            voter_id=me.key.id,
            voter_directory_id=me.key.directory_id,
            listeners=[make.Listener(name=end.listener, host=end.host, port=end.port) for end in me.endpoints],
            ack_when_committed=False,
        )

    def _remove(self, voter: Voter) -> messages.RemoveRaftVoterRequest:
        return messages.RemoveRaftVoterRequest(
            cluster_id=self._network.cluster_id, voter_id=voter.key.id, voter_directory_id=voter.key.directory_id
        )
