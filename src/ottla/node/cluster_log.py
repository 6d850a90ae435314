"""What happens in the cluster, in the log of a node: brokers that come and go, topics, leaders, ISRs, features.

It all comes from the committed metadata, so every node can tell it. Of brokers each node tells; of topics, and of
leaders in the cluster, those with a controller; of partitions that are led here, and of their ISRs, the broker. A
restart changes thousands of partitions in a moment, in many small steps: what concerns partitions and topics is
gathered for a second, and is then a line for each kind of change, with a few names and how many more there are.
"""

import logging
from collections.abc import Iterable
from typing import Final

from ottla.base.ports import Timer, Timers
from ottla.machines.metadata.image.brokers_image import BrokerRegistration
from ottla.machines.metadata.image.delta import MetadataDelta, PartitionChange
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import NO_LEADER
from ottla.runtime.rate_limited_log import RateLimitedLog

_log = logging.getLogger(__name__)

_GATHERED_S: Final = 1.0
_SHOWN: Final = 5
_MOST_KEPT: Final = 1000
"""Names of one kind that are gathered; beyond, they are counted."""


class _Gathered:
    """What changed in one way: some names, and how many in all."""

    def __init__(self) -> None:
        self.count = 0
        self.names: dict[str, str] = {}

    def add(self, name: str, detail: str = "") -> None:
        self.count += 1
        if len(self.names) < _MOST_KEPT or name in self.names:
            self.names[name] = detail

    @property
    def _total(self) -> int:
        """A name that came twice counts once, as far as names are kept."""
        return len(self.names) if len(self.names) < _MOST_KEPT else self.count

    def __str__(self) -> str:
        shown = [f"{name} {detail}".rstrip() for name, detail in list(self.names.items())[:_SHOWN]]
        more = self._total - len(shown)
        return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")

    def counted(self, noun: str) -> str:
        return f"1 {noun}" if self._total == 1 else f"{self._total:,} {noun}s"


class ClusterLog:
    """One node's. Is given every committed delta, after the image has it."""

    def __init__(
        self, timers: Timers, image: MetadataImage, node_id: int, *, is_broker: bool, is_controller: bool
    ) -> None:
        self._timers = timers
        self._image = image
        self._node_id = node_id
        self._is_broker = is_broker
        self._is_controller = is_controller
        self._brokers: dict[int, BrokerRegistration] = dict(image.brokers.by_id)
        self._broker_log = RateLimitedLog(_log, timers.now_s)
        self._timer: Timer | None = None
        self.is_stopping = False
        """Partitions that only this broker has cannot but lose their leader then."""
        self._forget()

    def _forget(self) -> None:
        self._created, self._deleted = _Gathered(), _Gathered()
        self._without_leader: dict[str, PartitionChange] = {}
        """Those that may be without one for a moment only: logged if they still are when the line is written."""
        self._new_leaders = _Gathered()
        self._led, self._not_led = _Gathered(), _Gathered()
        self._shrunk, self._grown = _Gathered(), _Gathered()

    def on_metadata(self, delta: MetadataDelta) -> None:
        for broker_id in sorted(delta.brokers):
            self._on_broker(broker_id)
        for name in sorted(delta.features):
            _log.info("feature %s has level %s", name, self._image.features.levels.get(name, 0))
        for topic in delta.topics_created.values():
            count = len(topic.partitions)
            self._created.add(topic.name, "(1 partition)" if count == 1 else f"({count} partitions)")
        for topic in delta.topics_deleted.values():
            self._deleted.add(topic.name)
        for change in delta.partition_changes(self._image):
            self._on_partition(change)
        if self._timer is None and (delta.topics_created or delta.topics_deleted or delta.partitions):
            self._timer = self._timers.after(_GATHERED_S, self.flush)

    def _on_broker(self, broker_id: int) -> None:
        before, now = self._brokers.get(broker_id), self._image.brokers.by_id.get(broker_id)
        log, who = self._broker_log, "this broker" if broker_id == self._node_id else f"broker {broker_id}"
        if now is None:
            self._brokers.pop(broker_id, None)
            if before is not None:
                log.info("%s was unregistered", who)
            return
        self._brokers[broker_id] = now
        if before is None or before.epoch != now.epoch:
            where = ", ".join(f"{one.listener}://{one.host}:{one.port}" for one in now.endpoints)
            rack = f", rack {now.rack}" if now.rack else ""
            log.info("%s registered with epoch %s: %s%s", who, now.epoch, where, rack)
            before = None
        if now.in_controlled_shutdown and not (before is not None and before.in_controlled_shutdown):
            log.info("%s is shutting down; the controller moves what it leads", who)
        if before is None:
            if not now.fenced:
                log.info("%s is unfenced", who)
        elif now.fenced and not before.fenced:
            # The controller fences a broker that shuts down and leads nothing without a word about the shutdown.
            if before.in_controlled_shutdown or (self.is_stopping and broker_id == self._node_id):
                log.info("%s is fenced: it has shut down", who)
            else:
                log.warning("%s is fenced: it has stopped, or the controller no longer hears from it", who)
        elif before.fenced and not now.fenced:
            log.info("%s is unfenced", who)
        if before is not None and (lost := len(set(before.directories) - set(now.directories))):
            log.warning("%s has lost %s of its log directories", who, lost)

    def _on_partition(self, change: PartitionChange) -> None:
        before, after, me = change.before, change.after, self._node_id
        name = f"{change.topic.name}-{change.partition_id}"
        if before is None:
            if after.leader == me and self._is_broker:
                self._led.add(name)
            return
        if after.leader != before.leader:
            if after.leader == NO_LEADER:
                self._without_leader[name] = change
            elif self._is_controller:
                self._new_leaders.add(name, f"({before.leader} to {after.leader})")
            if self._is_broker and after.leader == me:
                self._led.add(name)
            elif self._is_broker and before.leader == me:
                self._not_led.add(name)
        if after.leader == me and after.isr != before.isr:
            gathered = self._shrunk if set(before.isr) - set(after.isr) else self._grown
            gathered.add(name, f"(from {_ids(before.isr)} to {_ids(after.isr)})")

    def _still_without_leader(self) -> _Gathered:
        found = _Gathered()
        for name, change in self._without_leader.items():
            topic = self._image.topics.by_id.get(change.topic.id)
            now = None if topic is None else topic.partitions.get(change.partition_id)
            if now is not None and now.leader == NO_LEADER:
                found.add(name, f"(replicas {_ids(now.replicas)}, ISR {_ids(now.isr)})")
        return found

    def flush(self) -> None:
        """Writes what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_controller and self._created.count:
            _log.info("created %s: %s", self._created.counted("topic"), self._created)
        if self._is_controller and self._deleted.count:
            _log.info("deleted %s: %s", self._deleted.counted("topic"), self._deleted)
        without_leader = self._still_without_leader()
        if without_leader.count:
            counted = without_leader.counted("partition")
            level = logging.INFO if self.is_stopping else logging.WARNING
            _log.log(level, "%s lost the leader, and no other can be elected: %s", counted, without_leader)
        if self._new_leaders.count:
            _log.info("new leaders of %s: %s", self._new_leaders.counted("partition"), self._new_leaders)
        if self._led.count:
            _log.info("this broker now leads %s: %s", self._led.counted("partition"), self._led)
        if self._not_led.count:
            _log.info("this broker no longer leads %s: %s", self._not_led.counted("partition"), self._not_led)
        if self._shrunk.count:
            _log.info("the ISR of %s shrank: %s", self._shrunk.counted("partition"), self._shrunk)
        if self._grown.count:
            _log.info("the ISR of %s expanded: %s", self._grown.counted("partition"), self._grown)
        self._forget()


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes)) or "none"
