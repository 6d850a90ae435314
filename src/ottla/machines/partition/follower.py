"""What a leader knows of one follower, from its fetches in this leader epoch.

A follower is caught up when it asks for the end of the leader's log. Under steady load it never does: while its request
was on the way, the log has grown. So it is also caught up, as of its previous fetch, when it asks for what was the end
at that time. `replica.lag.time.max.ms` after it was last caught up it is out of sync.
"""

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
