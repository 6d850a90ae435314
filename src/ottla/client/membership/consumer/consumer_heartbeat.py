"""ConsumerGroupHeartbeat, by which a member of the new protocol says everything it has to say (KIP-848)."""

from collections.abc import Mapping
from typing import Final

from ottla.base.ids import Uuid
from ottla.client.errors import UnsupportedVersion
from ottla.client.membership.member import MemberSettings
from ottla.wire.messages import ConsumerGroupHeartbeatRequest

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""A static member that may come back: its partitions wait for it, until its session is over."""

_FIRST_WITH_PATTERNS: Final = 1

Share = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic id, sorted."""


class ConsumerHeartbeat:
    """Makes requests. What the coordinator got before and still holds is left out, but for a member that joins."""

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        self._settings = settings
        self.member_id = member_id
        self.topics: tuple[str, ...] = ()
        self.pattern: str | None = None
        self._sent_topics: tuple[str, ...] | None = None
        self._sent_pattern: str | None = None
        self._sent_share: Share | None = None

    def forget_what_was_sent(self) -> None:
        """The last request may not have arrived."""
        self._sent_topics = self._sent_pattern = self._sent_share = None

    def request(self, version: int, epoch: int, share: Share | None) -> ConsumerGroupHeartbeatRequest:
        """`share`: the partitions that the member has; None before it was given any."""
        if self.pattern is not None and version < _FIRST_WITH_PATTERNS:
            raise UnsupportedVersion("the broker matches no patterns: it is older than Kafka 4.0")
        request = self._bare(epoch)
        if epoch == JOINING_EPOCH:
            self.forget_what_was_sent()
            request.rack_id = self._settings.client_rack or None
            request.topic_partitions = []
        if self._sent_topics is None:
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
            request.server_assignor = self._settings.group_remote_assignor
        if self.topics != self._sent_topics:
            request.subscribed_topic_names = self._sent_topics = self.topics
        if self.pattern != self._sent_pattern:
            request.subscribed_topic_regex = self.pattern or ""
            self._sent_pattern = self.pattern
        if share is not None and share != self._sent_share and epoch != JOINING_EPOCH:
            self._sent_share = share
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in share.items()
            ]
        return request

    def leave_request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return self._bare(epoch)

    def _bare(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )
