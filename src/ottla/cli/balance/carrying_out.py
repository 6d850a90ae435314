"""A plan, carried out in throttled steps: some partitions at a time, the next ones when these are in sync.

Theory of operation. Before a step its replicas are throttled (KIP-73), and after the last one nothing is any more.
While a step is under way the cluster is looked at: when a broker is gone, or a partition that is not being moved falls
out of sync and stays so, the step is cancelled and the plan stopped. Ctrl-C does the same. What was moved stays moved,
and the file of the plan says what was before: to undo it is a plan in the other direction.

A partition that is where the plan wants it is passed over, so a plan that was stopped is resumed by giving it again. A
process that was killed leaves its step under way and throttled: that finishes by itself, or `stop_everything` cancels
it.

When the replicas of a step are in sync, the preferred leaders of its partitions are elected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.balance import sync_check
from ottla.cli.balance.cluster_load import registered_brokers
from ottla.cli.balance.proposing import Move
from ottla.cli.bars import ProgressBar
from ottla.cli.reassign.throttles import (
    BETWEEN_BROKERS,
    FOLLOWERS,
    LEADERS,
    PartitionMove,
    set_rates,
    topic_settings,
)
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_LOOK_S: Final = 0.5
_CHECK_S: Final = 2.0
_PATIENCE_S: Final = 60.0
"""How long something may be out of sync that the plan does not move."""
_ELECTED_AT_ONCE: Final = 50
_CLEAR_S: Final = 10.0


class Stopped(OttlaError):
    """The plan was not carried out to its end. What was moved stays moved."""


@dataclass(slots=True)
class CarriedOut:
    moved: int = 0
    copied_bytes: int = 0
    elected: int = 0
    problems: list[str] = field(default_factory=list)


def check_plan(admin: "Admin", wanted: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that the partitions have now. Raises `Stopped` for what does not exist, all of it by name, and for a
    plan that would leave a partition with fewer copies than it has."""
    up, fenced = registered_brokers(admin)
    names = sorted({at.topic for at in wanted})
    described = admin.describe_topics(names) if names else {}
    there = {
        TopicPartition(topic.name, one.partition): one.replicas
        for topic in (described.succeeded.values() if names else ())  # type: ignore[attr-defined]
        for one in topic.partitions
    }
    unknown = sorted({broker for replicas in wanted.values() for broker in replicas} - up.keys() - fenced)
    down = sorted(
        {broker for at, replicas in wanted.items() for broker in set(replicas) - set(there.get(at, ()))} & fenced
    )
    gone = sorted(wanted.keys() - there.keys())
    complaints = [f"there is no broker {broker}" for broker in unknown]
    complaints += [f"broker {broker} is not up" for broker in down]
    complaints += [f"there is no partition {at}" for at in gone]
    complaints += [
        f"{at} has {counted(len(there[at]), 'replica')}, and would have {len(replicas)} (`kafka-reassign-partitions` "
        "changes their number)"
        for at, replicas in sorted(wanted.items())
        if at in there and len(replicas) < len(there[at])
    ]
    if complaints:
        more = f" and {len(complaints) - 5} more" if len(complaints) > 5 else ""
        raise Stopped(f"the plan cannot be carried out, and nothing was changed: {'; '.join(complaints[:5])}{more}")
    return {at: there[at] for at in wanted}


def in_steps(moves: Sequence[Move], at_once: int) -> list[list[Move]]:
    """Moves of replicas some at a time; changes of leaders alone come last, and more of them together."""
    copied = [move for move in moves if move.adding or set(move.before) != set(move.after)]
    others = [move for move in moves if not (move.adding or set(move.before) != set(move.after))]
    steps = [copied[at : at + at_once] for at in range(0, len(copied), at_once)]
    return steps + [others[at : at + _ELECTED_AT_ONCE] for at in range(0, len(others), _ELECTED_AT_ONCE)]


class CarryingOut:
    """Used once, for one plan."""

    def __init__(self, admin: "Admin", bar: ProgressBar, *, throttle: int | None, at_once: int) -> None:
        """`throttle` is in bytes a second, for each broker; None leaves the moves without a limit."""
        self._admin = admin
        self._bar = bar
        self._throttle = throttle
        self._at_once = at_once
        self._brokers, _ = registered_brokers(admin)
        self._known = set(sync_check.lagging_partitions(admin))
        """Partitions that were out of sync before: they are no reason to stop."""
        self._wrong_since_s: float | None = None
        self._checked_s = 0.0
        self.done = CarriedOut()

    def run(self, moves: Sequence[Move]) -> CarriedOut:
        """Raises `Stopped`, and passes a `KeyboardInterrupt` on; either way nothing is under way or throttled then."""
        self._bar.restart("moved", sum(move.copied_bytes for move in moves))
        step: list[Move] = []
        before = 0
        try:
            for step in in_steps(moves, self._at_once):
                self._throttle_step(step)
                self._begin(step)
                self._wait(step, before)
                before += sum(move.copied_bytes for move in step)
                self._elect(step)
                self.done.moved += len(step)
                self.done.copied_bytes = before
            step = []
        finally:
            if step:
                self._cancel(step)
            if self._throttle is not None:
                left = clear(self._admin, {move.at.topic for move in moves}, self._brokers)
                if left:
                    names = ", ".join(map(str, left))
                    self._bar.say(
                        f"the throttle of broker {names} stays: only a broker that is up can be asked. Give `ottla "
                        "balance --stop` when it is"
                    )
        return self.done

    def _throttle_step(self, step: list[Move]) -> None:
        from ottla.client.admin.configs import ConfigResource

        limited = {
            move.at: PartitionMove(frozenset(move.before), frozenset(move.adding)) for move in step if move.adding
        }
        if self._throttle is None or not limited:
            return
        settings = {ConfigResource.topic(topic): of for topic, of in topic_settings(limited).items()}
        self._admin.incremental_alter_configs(settings).raise_first()
        involved = {broker for move in limited.values() for broker in move.sources | move.destinations}
        set_rates(self._admin, involved & self._brokers.keys(), dict.fromkeys(BETWEEN_BROKERS, str(self._throttle)))

    def _begin(self, step: list[Move]) -> None:
        begun = self._admin.alter_partition_reassignments({move.at: move.after for move in step})
        if begun.errors:
            reasons = "; ".join(f"{at}: {error}" for at, error in list(begun.errors.items())[:3])
            raise Stopped(f"a step was refused: {reasons}")

    def _wait(self, step: list[Move], before: int) -> None:
        """Until all new replicas of the step are in sync."""
        at = {move.at for move in step}
        while under_way := self._admin.list_partition_reassignments(at):
            self._bar.done = self._bar.size_bytes = before + self._copied(step, set(under_way))
            self._bar.show()
            self._check(at)
            sleep(_LOOK_S)
        self._bar.done = self._bar.size_bytes = before + sum(move.copied_bytes for move in step)
        self._bar.show()

    def _copied(self, step: list[Move], under_way: set[TopicPartition]) -> int:
        """How many bytes of the step's replicas are there."""
        if not self._bar.is_live:
            return 0
        brokers = sorted({broker for move in step for broker in move.adding} & self._brokers.keys())
        found = self._admin.describe_log_dirs(brokers) if brokers else None
        total = 0
        for move in step:
            for broker in move.adding:
                if move.at not in under_way:
                    total += move.size_bytes
                elif found is not None and broker not in found.errors:
                    sizes = [
                        one.replicas[move.at].size_bytes for one in found[broker].values() if move.at in one.replicas
                    ]
                    total += min(max(sizes, default=0), move.size_bytes)
        return total

    def _check(self, moving: set[TopicPartition]) -> None:
        """Raises `Stopped` if a broker is gone, or something else falls out of sync and stays so."""
        now_s = monotonic()
        if now_s - self._checked_s < _CHECK_S:
            return
        self._checked_s = now_s
        wrong = sync_check.problems(self._admin, brokers=self._brokers, moving=moving | self._known)
        if not wrong:
            self._wrong_since_s = None
            return
        if self._wrong_since_s is None:
            self._wrong_since_s = now_s
        if now_s - self._wrong_since_s >= _PATIENCE_S or any(one.startswith("not up") for one in wrong):
            raise Stopped(f"stopped, because something else is wrong: {'; '.join(wrong)}")

    def _elect(self, step: list[Move]) -> None:
        from ottla.client.admin.replicas import ElectionType
        from ottla.client.errors import ElectionNotNeeded

        partitions = [move.at for move in step if move.leader_changes]
        if not partitions:
            return
        elected = self._admin.elect_leaders(ElectionType.PREFERRED, partitions)
        for at, error in elected.errors.items():
            if not isinstance(error, ElectionNotNeeded):
                self.done.problems.append(f"{at}: broker {self._first(step, at)} does not lead: {error}")
        self.done.elected += len(elected.succeeded)

    @staticmethod
    def _first(step: list[Move], at: TopicPartition) -> int:
        return next(move.after[0] for move in step if move.at == at)

    def _cancel(self, step: list[Move]) -> None:
        under_way = self._admin.list_partition_reassignments([move.at for move in step])
        if under_way:
            cancelled = self._admin.alter_partition_reassignments(dict.fromkeys(under_way))
            # What is cancelled has its replicas in another order, with another one preferred to lead.
            before = {move.at: move.before for move in step if move.at in cancelled.succeeded}
            _ = self._admin.alter_partition_reassignments(before).errors
            self._bar.say(f"{counted(len(cancelled.succeeded), 'move')} under way cancelled; those before stay")


def clear(admin: "Admin", topics: Iterable[str], brokers: Iterable[int]) -> list[int]:
    """Takes throttles away. Returns the brokers that are down, and so keep theirs."""
    from ottla.client.admin.configs import ConfigResource

    none: dict[str, str | None] = dict.fromkeys((LEADERS, FOLLOWERS))
    names = sorted(set(topics))
    if names:
        # One that was deleted meanwhile has no throttle any more.
        _ = admin.incremental_alter_configs({ConfigResource.topic(topic): none for topic in names}).errors
    up, _ = registered_brokers(admin)
    throttled = set(brokers)
    rates: dict[str, str | None] = dict.fromkeys(BETWEEN_BROKERS)
    changes = {ConfigResource.broker(broker): rates for broker in sorted(throttled & up.keys())}
    failed = admin.incremental_alter_configs(changes, timeout=_CLEAR_S).errors if changes else {}
    return sorted({*(throttled - up.keys()), *(int(resource.name) for resource in failed)})


def stop_everything(admin: "Admin") -> tuple[int, int]:
    """Cancels all moves that are under way, and takes all throttles away. Returns how many moves, and topics."""
    from ottla.client.admin.configs import ConfigResource, ConfigSource

    under_way = admin.list_partition_reassignments()
    if under_way:
        admin.alter_partition_reassignments(dict.fromkeys(under_way)).raise_first()
    names = [one.name for one in admin.list_topics(include_internal=True)]
    resources = [ConfigResource.topic(name) for name in names]
    found = admin.describe_configs({one: [LEADERS, FOLLOWERS] for one in resources}).succeeded if names else {}
    throttled = [
        resource.name
        for resource, settings in found.items()
        if any(one.source is ConfigSource.DYNAMIC_TOPIC and one.value for one in settings.values())
    ]
    brokers, _ = registered_brokers(admin)
    clear(admin, throttled, brokers)
    return len(under_way), len(throttled)
