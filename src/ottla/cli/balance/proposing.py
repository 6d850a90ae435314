"""Which replicas should be elsewhere, and who should lead: a proposal by disk, traffic, leaders and racks.

Theory of operation. First comes what must be: replicas leave brokers that are to be emptied, and a partition that is in
fewer racks than it could be gets another rack. Then single replicas go from a broker that has more than its share to
one that has less, each time the one that evens out most, until every broker is within the tolerance or nothing helps
any more. At last leaders: the replica that is first in the list is preferred, and who is first costs nothing to change.

How uneven a cluster is, is a number: for disk, traffic (bytes written a second), replicas, leaders and what leaders are
sent, the squares of how far each broker is from the mean, as a share of it. A move is good if the number falls. No move
takes a partition into fewer racks, nor a broker beyond the room that it has.

Pure: the same load gives the same plan.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition

DISK: Final = "disk"
TRAFFIC: Final = "traffic"
LEADERS: Final = "leaders"
RACKS: Final = "racks"
GOALS: Final = (DISK, TRAFFIC, LEADERS, RACKS)

_REPLICA_COUNT: Final = "replicas"
_LEADER_TRAFFIC: Final = "leader traffic"
_WEIGHTS: Final = {DISK: 1.0, TRAFFIC: 1.0, LEADERS: 1.0, _REPLICA_COUNT: 0.25, _LEADER_TRAFFIC: 1.0}
_ROOM_KEPT: Final = 0.1
"""The share of a broker's disks that a plan leaves free."""
_LEAST_GAIN: Final = 1e-4
_SOURCES: Final = 3
_DESTINATIONS: Final = 3
"""Brokers with most and with least that are looked at."""
_MOVES_A_LOOK: Final = 50
_AS_GOOD: Final = 0.9


class CannotPropose(OttlaError):
    """No plan does what was asked for."""


class BrokerPlace(NamedTuple):
    """A broker as a place for replicas."""

    id: int
    rack: str | None = None
    free_bytes: int | None = None
    """On its disks; None if it does not tell."""
    total_bytes: int | None = None


class PartitionLoad(NamedTuple):
    at: TopicPartition
    replicas: tuple[int, ...]
    """Broker ids, the preferred leader first."""
    size_bytes: int = 0
    """Of one replica."""
    bytes_per_s: float = 0.0
    """Written to it."""


class Move(NamedTuple):
    """What is to become of one partition."""

    at: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int
    """Of a replica; 0 if no replica moves."""

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.adding)

    @property
    def leader_changes(self) -> bool:
        return self.before[0] != self.after[0]


@dataclass(slots=True)
class Share:
    """What one broker has."""

    replicas: int = 0
    leaders: int = 0
    disk: int = 0
    traffic: float = 0.0
    leader_traffic: float = 0.0


@dataclass(slots=True)
class Proposal:
    moves: list[Move]
    """Those that must be come first."""
    before: dict[int, Share]
    after: dict[int, Share]
    unmet: list[str] = field(default_factory=list)
    """What was asked for and cannot be had."""

    @property
    def copied_bytes(self) -> int:
        return sum(move.copied_bytes for move in self.moves)


def shares(partitions: Iterable[PartitionLoad], brokers: Iterable[int]) -> dict[int, Share]:
    found = {broker: Share() for broker in sorted(brokers)}
    for one in partitions:
        for index, broker in enumerate(one.replicas):
            share = found.setdefault(broker, Share())
            share.replicas += 1
            share.disk += one.size_bytes
            share.traffic += one.bytes_per_s
            if index == 0:
                share.leaders += 1
                share.leader_traffic += one.bytes_per_s
    return found


def propose(
    brokers: Collection[BrokerPlace],
    partitions: Collection[PartitionLoad],
    *,
    emptied: Collection[int] = (),
    goals: Collection[str] = GOALS,
    tolerance: float = 0.1,
    most_moves: int = 1000,
    only_emptied: bool = False,
) -> Proposal:
    """`brokers` are those that may have replicas; `emptied` are to have none. Raises `CannotPropose`.

    With `only_emptied`, partitions that are not on those stay as they are.
    """
    targets = {broker.id: broker for broker in brokers if broker.id not in set(emptied)}
    if not targets:
        raise CannotPropose("no broker is left that could have the replicas")
    work = _Work(targets, partitions, goals, tolerance)
    for one in sorted(partitions):
        work.leave(one, emptied)
    if RACKS in goals and not only_emptied:
        for one in sorted(partitions):
            work.spread(one)
    required = {at for at, replicas in work.replicas.items() if set(replicas) != set(work.loads[at].replicas)}
    left = 0 if only_emptied else most_moves
    while left > 0 and (moved := work.even_out(left)):
        left -= moved
    if LEADERS in goals:
        work.spread_leaders(most_moves * 10, sorted(required if only_emptied else work.replicas))
    moves = [
        Move(
            at, load.replicas, work.replicas[at], load.size_bytes if set(load.replicas) != set(work.replicas[at]) else 0
        )
        for at, load in sorted(work.loads.items())
        if work.replicas[at] != load.replicas
    ]
    moves.sort(key=lambda move: (move.at not in required, not move.size_bytes and not move.adding))
    everyone = {*targets, *(broker.id for broker in brokers), *emptied}
    after = [load._replace(replicas=work.replicas[at]) for at, load in work.loads.items()]
    return Proposal(moves, shares(partitions, everyone), shares(after, everyone), work.unmet)


class _Work:
    """A plan in the making."""

    def __init__(
        self,
        targets: Mapping[int, BrokerPlace],
        partitions: Collection[PartitionLoad],
        goals: Collection[str],
        tolerance: float,
    ) -> None:
        self.loads = {one.at: one for one in partitions}
        self.replicas = {one.at: one.replicas for one in partitions}
        self.unmet: list[str] = []
        self._targets = targets
        self._racks = {broker.rack for broker in targets.values() if broker.rack is not None}
        self._tolerance = tolerance
        self._kinds = [kind for kind in (DISK, TRAFFIC) if kind in goals]
        if LEADERS in goals:
            self._kinds += [LEADERS, _LEADER_TRAFFIC]
        self._kinds += [_REPLICA_COUNT] if DISK in goals or TRAFFIC in goals else []
        self._has: dict[str, dict[int, float]] = {kind: dict.fromkeys(targets, 0.0) for kind in _WEIGHTS}
        self._gone: dict[int, int] = {}
        self._on: dict[int, set[TopicPartition]] = {broker: set() for broker in targets}
        for at, replicas in self.replicas.items():
            for index, broker in enumerate(replicas):
                self._count(at, broker, 1, is_first=index == 0)
        self._means = dict.fromkeys(_WEIGHTS, 0.0)
        self._find_means()

    # --- counting ---

    def _amounts(self, at: TopicPartition, *, is_first: bool) -> dict[str, float]:
        load = self.loads[at]
        amounts = {DISK: float(load.size_bytes), TRAFFIC: load.bytes_per_s, _REPLICA_COUNT: 1.0}
        if is_first:
            amounts |= {LEADERS: 1.0, _LEADER_TRAFFIC: load.bytes_per_s}
        return amounts

    def _count(self, at: TopicPartition, broker: int, sign: int, *, is_first: bool) -> None:
        if broker not in self._targets:
            return
        for kind, amount in self._amounts(at, is_first=is_first).items():
            self._has[kind][broker] += sign * amount
        if sign > 0:
            self._on[broker].add(at)
        else:
            self._on[broker].discard(at)

    def _find_means(self) -> None:
        """What each broker would have if all were even, replicas that are still elsewhere included."""
        count = len(self._targets)
        for at, replicas in self.replicas.items():
            for index in range(len(replicas)):
                for kind, amount in self._amounts(at, is_first=index == 0).items():
                    self._means[kind] += amount / count

    def _unevenness(self, kind: str, amount: float) -> float:
        mean = self._means[kind]
        return _WEIGHTS[kind] * ((amount - mean) / mean) ** 2 if mean else 0.0

    def _change(self, broker: int, amounts: Mapping[str, float], sign: int) -> float:
        """How much more uneven the cluster is with that much more (or less) on a broker."""
        total = 0.0
        for kind in self._kinds:
            if amount := amounts.get(kind):
                has = self._has[kind][broker]
                total += self._unevenness(kind, has + sign * amount) - self._unevenness(kind, has)
        return total

    # --- where a replica may go ---

    def _has_room(self, broker: int, size_bytes: int) -> bool:
        place = self._targets[broker]
        if place.free_bytes is None or not size_bytes:
            return True
        kept = (place.total_bytes or 0) * _ROOM_KEPT
        return place.free_bytes - self._gone.get(broker, 0) - size_bytes >= kept

    def _rack_count(self, replicas: Iterable[int]) -> int:
        return len({self._targets[broker].rack for broker in replicas if broker in self._targets})

    def _destinations(self, at: TopicPartition, leaving: int | None) -> list[int]:
        """Brokers that may have a further replica, those in racks without one first if that is more racks."""
        stay = [broker for broker in self.replicas[at] if broker != leaving]
        size = self.loads[at].size_bytes
        free = [broker for broker in self._targets if broker not in stay and self._has_room(broker, size)]
        if not self._racks:
            return free
        taken = {self._targets[broker].rack for broker in stay if broker in self._targets}
        return [broker for broker in free if self._targets[broker].rack not in taken] or free

    def _best(self, at: TopicPartition, leaving: int, candidates: Iterable[int]) -> int | None:
        is_first = self.replicas[at][0] == leaving
        amounts = self._amounts(at, is_first=is_first)
        found = [(self._change(broker, amounts, 1), broker) for broker in candidates if broker != leaving]
        return min(found)[1] if found else None

    def _move(self, at: TopicPartition, leaving: int, coming: int) -> None:
        replicas = self.replicas[at]
        is_first = replicas[0] == leaving
        self._count(at, leaving, -1, is_first=is_first)
        self._count(at, coming, 1, is_first=is_first)
        if coming not in self.loads[at].replicas:
            self._gone[coming] = self._gone.get(coming, 0) + self.loads[at].size_bytes
        if leaving not in self.loads[at].replicas:
            self._gone[leaving] = self._gone.get(leaving, 0) - self.loads[at].size_bytes
        self.replicas[at] = tuple(coming if broker == leaving else broker for broker in replicas)

    # --- what must be ---

    def leave(self, load: PartitionLoad, emptied: Collection[int]) -> None:
        """Takes the replicas of a partition off these brokers. Raises `CannotPropose` where they find no other."""
        for broker in load.replicas:
            if broker not in emptied:
                continue
            coming = self._best(load.at, broker, self._destinations(load.at, broker))
            if coming is None:
                others = len([one for one in self._targets if one not in self.replicas[load.at]])
                why = "the others are full" if others else f"there is no broker without one of its {len(load.replicas)}"
                raise CannotPropose(f"{load.at} has a replica on broker {broker}, and {why}: add a broker first")
            self._move(load.at, broker, coming)

    def spread(self, load: PartitionLoad) -> None:
        """Gives a partition as many racks as it can have."""
        at = load.at
        possible = min(len(self._racks), len(self.replicas[at]))
        while self._rack_count(self.replicas[at]) < possible:
            racks = [self._targets[one].rack for one in self.replicas[at] if one in self._targets]
            crowded = [
                one for one in self.replicas[at] if one in self._targets and racks.count(self._targets[one].rack) > 1
            ]
            options = [
                (self._change(coming, self._amounts(at, is_first=False), 1), coming, leaving)
                for leaving in crowded
                for coming in self._destinations(at, leaving)
                if self._targets[coming].rack not in racks
            ]
            if not options:
                self.unmet.append(f"{at} stays in {self._rack_count(self.replicas[at])} of {possible} racks")
                return
            _, coming, leaving = min(options)
            self._move(at, leaving, coming)

    # --- what is better ---

    def _deviations(self, broker: int) -> list[float]:
        """How far a broker is from its share, of each thing that counts; as a share of that."""
        kinds: list[str] = [kind for kind in (DISK, TRAFFIC) if kind in self._kinds and self._means[kind]]
        if not kinds and _REPLICA_COUNT in self._kinds and self._means[_REPLICA_COUNT]:
            kinds = [_REPLICA_COUNT]  # nothing is stored yet
        return [(self._has[kind][broker] - self._means[kind]) / self._means[kind] for kind in kinds] or [0.0]

    def _excess(self, broker: int) -> float:
        return max(self._deviations(broker))

    def _is_even(self) -> bool:
        return all(abs(one) <= self._tolerance for broker in self._targets for one in self._deviations(broker))

    def even_out(self, most: int) -> int:
        """Moves replicas off the broker with most, to those with least, the ones that help most first.

        Returns how many; 0 if all brokers are within the tolerance, or nothing helps.
        """
        if self._is_even():
            return 0
        sources = sorted(self._targets, key=lambda broker: (-self._excess(broker), broker))
        for index, source in enumerate(sources[:_SOURCES]):
            if self._excess(source) <= 0:
                break
            # A little less than the others may have, so that not every move needs a look at everything.
            others = (self._excess(sources[index + 1]) if index + 1 < len(sources) else 0.0) - self._tolerance / 4
            if moved := self._relieve(source, others, min(most, _MOVES_A_LOOK)):
                return moved
        return 0

    def _relieve(self, source: int, others: float, most: int) -> int:
        """Until others have more than this one.

        A move helps less with every one before it, so one that is still as good as the best were is good enough.
        """
        emptiest = sorted(self._targets, key=lambda broker: (sum(self._deviations(broker)), broker))[:_DESTINATIONS]
        options: list[tuple[float, TopicPartition, int]] = []
        for at in self._on[source]:
            options += self._options(at, source, emptiest)
        heapify(options)
        moved = 0
        while options and moved < most:
            _, at, coming = heappop(options)
            now = self._options(at, source, [coming]) if at in self._on[source] else []
            if not now:
                continue
            if options and now[0][0] > _AS_GOOD * options[0][0]:
                heappush(options, now[0])
                continue
            self._move(at, source, coming)
            moved += 1
            if self._excess(source) < others or self._is_even():
                break
        return moved

    def _options(
        self, at: TopicPartition, source: int, destinations: Iterable[int]
    ) -> list[tuple[float, TopicPartition, int]]:
        """Where a replica may go so that it helps: how much, the partition, the broker."""
        replicas = self.replicas[at]
        load = self.loads[at]
        amounts = self._amounts(at, is_first=replicas[0] == source)
        gone = self._change(source, amounts, -1)
        found = []
        for coming in destinations:
            if coming in replicas or not self._has_room(coming, load.size_bytes):
                continue
            if self._racks:
                stay = [broker for broker in replicas if broker != source]
                if self._rack_count((*stay, coming)) < self._rack_count(replicas):
                    continue
            gain = gone + self._change(coming, amounts, 1)
            if gain < -_LEAST_GAIN / max(len(self.loads), 1):
                found.append((gain, at, coming))
        return found

    def spread_leaders(self, most_changes: int, partitions: Iterable[TopicPartition]) -> None:
        """Puts another replica of these first where that evens out who leads."""
        chosen = list(partitions)
        kinds = (LEADERS, _LEADER_TRAFFIC)

        def change(broker: int, load: PartitionLoad, sign: int) -> float:
            amounts = {LEADERS: 1.0, _LEADER_TRAFFIC: load.bytes_per_s}
            return sum(
                self._unevenness(kind, self._has[kind][broker] + sign * amounts[kind])
                - self._unevenness(kind, self._has[kind][broker])
                for kind in kinds
                if amounts[kind]
            )

        is_better = True
        while is_better and most_changes > 0:
            is_better = False
            for at in chosen:
                replicas, load = self.replicas[at], self.loads[at]
                leader = replicas[0]
                if leader not in self._targets:
                    continue
                gone = change(leader, load, -1)
                options = [
                    (gone + change(broker, load, 1), broker) for broker in replicas[1:] if broker in self._targets
                ]
                if not options or min(options)[0] >= -_LEAST_GAIN:
                    continue
                _, broker = min(options)
                for kind, amount in ((LEADERS, 1.0), (_LEADER_TRAFFIC, load.bytes_per_s)):
                    self._has[kind][leader] -= amount
                    self._has[kind][broker] += amount
                self.replicas[at] = (broker, *(one for one in replicas if one != broker))
                is_better = True
                most_changes -= 1
