"""The leader's view of one partition's replicas: who is in sync, and up to where everyone in sync has the log.

Theory of operation. The high watermark is the smallest end among the leader's own log and those of the followers in the
ISR: what is before it survives the loss of all but one of them, so consumers may see it and acks=all is given out. It
never goes back while this node leads. A follower's end is learned from the offset that it fetches next; until it has
fetched in this leader epoch it is unknown, and holds the high watermark where it is.

The ISR is the controller's to change (AlterPartition, KIP-497). The leader proposes, one change at a time, and until it
knows what became of a proposal it counts on the most that may be true: a follower that is proposed holds the high
watermark back already, and one that is to leave does so until it has left (`maximal_isr`). A caught-up follower that is
about to be proposed holds it too, or it would be out of reach again by then. One that the controller took out, as when
its log directory has failed, is not about to be proposed before it has fetched again.

- It proposes to take a follower in that has all up to the high watermark, and all that there was when this leader epoch
  began. Brokers that are fenced, about to stop, or in another life than the one that fetched, are not (KIP-841, 903).
- It proposes to leave a follower out that was not caught up for `replica.lag.time.max.ms`.
- With fewer in the ISR than `min.insync.replicas` the high watermark stays where it is, so that all that is before it
  is on that many replicas, of which the controller keeps those that leave as eligible leaders (KIP-966).
- A leader that was elected uncleanly has recovered as soon as it leads: its log is what it is (KIP-704).

The leader's own end is not always the end of its log: while `flush.messages` makes it wait for the disk, what is not
yet flushed does not count (the driver decides, and reports with `on_local_end`).

A leader epoch begins with `LeaderState(...)`; nothing is carried over but the high watermark, which is a lower bound. A
node that is the only replica reaches the end of its log at once.
"""

from typing import NamedTuple, Protocol

from ottla.wire.errors import ErrorCode

# What a leader knows of one follower, from its fetches in this leader epoch.
#
# A follower is caught up when it asks for the end of the leader's log. Under steady load it never does: while its
# request was on the way, the log has grown. So it is also caught up, as of its previous fetch, when it asks for what
# was the end at that time. `replica.lag.time.max.ms` after it was last caught up it is out of sync.

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1


class Follower:
    """`end_offset` is unknown until it has fetched. `broker_epoch` is unknown, too, with fetches before KIP-903."""

    __slots__ = (
        "_fetched_ms",
        "_leader_end_at_fetch",
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "has_fetched",
        "log_start_offset",
    )

    def __init__(self, caught_up_ms: int = 0) -> None:
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.caught_up_ms = caught_up_ms
        self.has_fetched = False
        self._fetched_ms = 0
        self._leader_end_at_fetch = UNKNOWN_OFFSET

    def on_fetched(
        self, offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """It asks for `offset`, of a log that ends at `leader_end_offset` now. It has all before."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self.has_fetched and offset >= self._leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = offset  # Maybe less than before: it has lost its disk, or was made anew.
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.has_fetched = True
        self._fetched_ms = now_ms
        self._leader_end_at_fetch = max(self._leader_end_at_fetch, leader_end_offset)

    def on_left(self) -> None:
        """The controller has taken it out of the ISR: it is behind until it is caught up anew."""
        self.caught_up_ms = 0

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms


# A change of the ISR that a leader has asked the controller for (AlterPartition, KIP-497).


class IsrProposal(NamedTuple):
    """It holds for one leader epoch and one partition epoch: the controller refuses it for any other."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """For each of them the epoch in which it has fetched, so that a broker that has restarted since, and may have lost
    what it had, is not taken for the one that was in sync (KIP-903). -1 is not checked.
    """
    leader_epoch: int
    partition_epoch: int


# The controller has not taken a proposal, and never will: all is as it was.
_DROPPED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# What the controller knows and we do not is on its way: the proposal stands until the metadata has come.
_OVERTAKEN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Brokers(Protocol):
    """What the metadata says of the cluster's brokers, at this moment."""

    def active_epoch(self, broker_id: int, /) -> int | None:
        """The epoch of a broker that is neither fenced nor about to stop; None of any other."""

    def is_alive(self, broker_id: int, /) -> bool:
        """Whether a broker is registered and not fenced."""


class LeaderState:
    """A partition that this node leads in one leader epoch. Methods `on_…` return whether the high watermark moved."""

    __slots__ = (
        "_brokers",
        "_max_lag_ms",
        "_now_ms",
        "epoch_start_offset",
        "followers",
        "has_enough_replicas",
        "high_watermark",
        "isr",
        "leader_epoch",
        "local_end_offset",
        "local_id",
        "min_insync_replicas",
        "partition_epoch",
        "proposal",
        "replicas",
    )

    def __init__(
        self,
        local_id: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        log_end_offset: int,
        local_end_offset: int,
        high_watermark: int,
        min_insync_replicas: int,
        max_lag_ms: int,
        brokers: Brokers,
        now_ms: int,
    ) -> None:
        assert local_id in replicas, "a leader is one of the replicas"
        self.local_id = local_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.isr = isr
        self.proposal: IsrProposal | None = None
        self.epoch_start_offset = log_end_offset
        self.high_watermark = high_watermark
        self.min_insync_replicas = min_insync_replicas
        self.local_end_offset = local_end_offset
        self.followers = {
            replica: Follower(now_ms if replica in isr else 0) for replica in replicas if replica != local_id
        }
        self._max_lag_ms = max_lag_ms
        self._brokers = brokers
        self._now_ms = now_ms  # As of the last event that said it: not every event does.
        self.has_enough_replicas = self._has_enough(isr)
        """Whether a write with acks=all may be taken."""
        self._advance()

    # The high watermark

    def on_local_end(self, end_offset: int) -> bool:
        """The leader's log has grown, durably enough, to `end_offset`."""
        assert end_offset >= self.local_end_offset, "a leader's log does not shrink"
        self.local_end_offset = end_offset
        if not self.followers:
            if end_offset <= self.high_watermark:
                return False
            self.high_watermark = end_offset
            return True
        return self._advance()

    def is_of_the_past(self, replica: int, broker_epoch: int) -> bool:
        """Whether a follower's fetch was sent before its broker restarted, and another one has come since (KIP-903)."""
        return UNKNOWN_EPOCH < broker_epoch < self.followers[replica].broker_epoch

    def on_fetched(
        self, replica: int, offset: int, log_start_offset: int, now_ms: int, broker_epoch: int = UNKNOWN_EPOCH
    ) -> bool:
        """A follower asks for `offset`, which is in the log or its end: it has everything before."""
        follower = self.followers.get(replica)
        if follower is None:
            return False  # It was removed, and has not heard of it yet.
        self._now_ms = max(self._now_ms, now_ms)
        follower.on_fetched(offset, log_start_offset, broker_epoch, self.local_end_offset, now_ms)
        return self._advance()

    def on_time(self, now_ms: int) -> bool:
        """Time has passed: a follower that was waited for may be late by now."""
        self._now_ms = max(self._now_ms, now_ms)
        return bool(self.followers) and self._advance()

    def on_min_insync_replicas(self, min_insync_replicas: int) -> bool:
        """The topic's setting is another."""
        self.min_insync_replicas = min_insync_replicas
        self.has_enough_replicas = self._has_enough(self.isr)
        return bool(self.followers) and self._advance()

    def on_image(self, replicas: tuple[int, ...], isr: tuple[int, ...], partition_epoch: int) -> bool:
        """The controller has changed the ISR or the replicas within this leader epoch, and maybe as we proposed."""
        if partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        self.proposal = None
        for replica in self.isr:
            if replica not in isr and replica in self.followers:
                self.followers[replica].on_left()
        self.isr = isr
        if replicas != self.replicas:
            self.replicas = replicas
            others = [replica for replica in replicas if replica != self.local_id]
            self.followers = {replica: self.followers.get(replica) or Follower() for replica in others}
        self.has_enough_replicas = self._has_enough(isr)
        return self._advance()

    def _advance(self) -> bool:
        if not self.has_enough_replicas:
            return False
        high_watermark, counted = self.local_end_offset, self.maximal_isr
        for replica, follower in self.followers.items():
            if follower.end_offset < high_watermark and (replica in counted or self._is_about_to_join(replica)):
                high_watermark = follower.end_offset
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The ISR, and who may be in it by now."""
        if self.proposal is None:
            return self.isr
        return (*self.isr, *(replica for replica in self.proposal.isr if replica not in self.isr))

    def _is_about_to_join(self, replica: int) -> bool:
        follower = self.followers[replica]
        is_caught_up = follower.is_caught_up(self.local_end_offset, self._now_ms, self._max_lag_ms)
        return is_caught_up and self._is_eligible(replica)

    def _is_eligible(self, replica: int) -> bool:
        """Whether a follower may be in the ISR, as far as the metadata knows its broker."""
        follower, epoch = self.followers[replica], self._brokers.active_epoch(replica)
        return epoch is not None and follower.has_fetched and follower.broker_epoch in (UNKNOWN_EPOCH, epoch)

    # The ISR

    def propose_to_expand(self, replica: int) -> IsrProposal | None:
        """The ISR with a follower that has just fetched, if it belongs there; `proposal` from now on."""
        follower = self.followers.get(replica)
        if follower is None or self.proposal is not None or replica in self.isr:
            return None
        if follower.end_offset < max(self.high_watermark, self.epoch_start_offset) or not self._is_eligible(replica):
            return None
        return self._propose((*self.isr, replica))

    def propose_to_shrink(self, now_ms: int) -> IsrProposal | None:
        """The ISR without followers that have not been caught up for too long; `proposal` from now on."""
        self._now_ms = max(self._now_ms, now_ms)
        if self.proposal is not None:
            return None
        end_offset, max_lag_ms = self.local_end_offset, self._max_lag_ms
        isr = tuple(
            replica
            for replica in self.isr
            if replica not in self.followers or self.followers[replica].is_caught_up(end_offset, now_ms, max_lag_ms)
        )
        return self._propose(isr) if len(isr) < len(self.isr) else None

    def _propose(self, isr: tuple[int, ...]) -> IsrProposal:
        epochs = tuple(
            self.followers[replica].broker_epoch if replica in self.followers else UNKNOWN_EPOCH for replica in isr
        )
        self.proposal = IsrProposal(isr, epochs, self.leader_epoch, self.partition_epoch)
        return self.proposal

    def on_proposal_taken(self, proposal: IsrProposal, partition_epoch: int) -> bool:
        """The controller's answer, which may come before or after the metadata that say the same.

        One that comes before changes nothing yet: the metadata may also raise `min.insync.replicas`, and the replicas
        that have left are eligible to lead by that number. To count on the new ISR with the old number would
        acknowledge what such a leader does not have.
        """
        if proposal is not self.proposal or partition_epoch > self.partition_epoch:
            return False
        self.proposal = None  # All was so already.
        return self._advance()

    def on_proposal_refused(self, proposal: IsrProposal, error: ErrorCode) -> bool:
        """Returns whether the same is to be proposed again. It may have been taken although no answer came."""
        if proposal is not self.proposal or error in _OVERTAKEN:
            return False
        if error in _DROPPED:
            self.proposal = None
            return False
        return True

    # Answers

    @property
    def low_watermark(self) -> int | None:
        """Up to where every live follower has deleted; None when this leader is the only one to ask."""
        alive = self._brokers.is_alive
        return min(
            (follower.log_start_offset for replica, follower in self.followers.items() if alive(replica)), default=None
        )

    def _has_enough(self, isr: tuple[int, ...]) -> bool:
        """A topic with fewer replicas than its `min.insync.replicas` needs all of them."""
        return len(isr) >= min(self.min_insync_replicas, len(self.replicas))

    def acknowledgement(self, required_offset: int) -> ErrorCode | None:
        """What a producer that waits for all gets for records that end before `required_offset`; None: wait."""
        if self.high_watermark < required_offset:
            return None
        if not self._has_enough(self.maximal_isr):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE
