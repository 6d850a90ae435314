"""The leader's view of one partition's replicas: who is in sync, and up to where everyone in sync has the log.

Theory of operation. The high watermark is the smallest end among the leader's own log and those of the followers in the
ISR: what is before it survives the loss of all but one of them, so consumers may see it and acks=all is given out. It
never goes back while this node leads. A follower's end is learned from the offset that it fetches next; until it has
fetched in this leader epoch it is unknown, and holds the high watermark where it is.

The leader's own end is not always the end of its log: while `flush.messages` makes it wait for the disk, what is not
yet flushed does not count (the driver decides, and reports with `on_local_end`).

A leader epoch begins with `LeaderState(...)`; nothing is carried over but the high watermark, which is a lower bound. A
node that is the only replica reaches the end of its log at once.
"""

from dataclasses import dataclass

from ottla.wire.errors import ErrorCode

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class Follower:
    """What fetches have told of a replica in this leader epoch."""

    end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    caught_up_ms: int = 0
    """When it last was known to have all of the leader's log (replica.lag.time.max.ms)."""


class LeaderState:
    """A partition that this node leads in one leader epoch. Methods `on_…` return whether the high watermark moved."""

    __slots__ = (
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "leader_epoch",
        "local_end_offset",
        "local_id",
        "partition_epoch",
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
        now_ms: int,
    ) -> None:
        assert local_id in replicas, "a leader is one of the replicas"
        self.local_id = local_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.isr = isr
        self.epoch_start_offset = log_end_offset
        self.high_watermark = high_watermark
        self.followers = {replica: Follower(caught_up_ms=now_ms) for replica in replicas if replica != local_id}
        self.local_end_offset = local_end_offset
        self._advance()

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

    def on_fetched(self, replica: int, offset: int, log_start_offset: int, now_ms: int) -> bool:
        """A follower asks for `offset`: it has everything before."""
        follower = self.followers.get(replica)
        if follower is None:
            return False  # It was removed, and has not heard of it yet.
        if offset >= self.local_end_offset:
            follower.caught_up_ms = now_ms
        follower.end_offset = offset  # Maybe less than before: it has lost its disk, or was made anew.
        follower.log_start_offset = log_start_offset
        return self._advance()

    def on_committed_isr(self, isr: tuple[int, ...], partition_epoch: int) -> bool:
        """The controller has changed the ISR within this leader epoch."""
        if partition_epoch <= self.partition_epoch:
            return False
        self.isr = isr
        self.partition_epoch = partition_epoch
        return self._advance()

    def _advance(self) -> bool:
        high_watermark = self.local_end_offset
        for replica, follower in self.followers.items():
            if replica in self.isr and follower.end_offset < high_watermark:
                high_watermark = follower.end_offset
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    @property
    def low_watermark(self) -> int | None:
        """Up to where every live replica has deleted; None when this leader is the only one to ask."""
        starts = [self.followers[replica].log_start_offset for replica in self.isr if replica in self.followers]
        return min(starts, default=None)

    def has_enough_replicas(self, min_insync_replicas: int) -> bool:
        """Whether a write with acks=all may be taken. A topic with fewer replicas than that needs all of them."""
        in_sync = len(self.isr)
        return in_sync >= min_insync_replicas or in_sync >= len(self.replicas)

    def acknowledgement(self, required_offset: int, min_insync_replicas: int) -> ErrorCode | None:
        """What a producer that waits for all is told about records that end before `required_offset`; None: wait."""
        if self.high_watermark < required_offset:
            return None
        if not self.has_enough_replicas(min_insync_replicas):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE
