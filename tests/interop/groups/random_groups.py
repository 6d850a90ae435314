"""Classic groups as they might be, from a seed: members come, go, change their minds, miss rounds and lie.

    python -m tests.interop.groups.random_groups SEED COUNT \\
        > tests/unit/client/membership/groups_of_kafka.jsonl

writes groups of each assignor with what Apache Kafka's assignors decide, for tests that have no Java.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import MemberSubscription, Topics
from ottla.client.membership.assignors.by_name import ASSIGNORS
from ottla.client.membership.classic.consumer_protocol import read_assignment, read_subscription, write_subscription
from tests.interop.apache_kafka import java

CLIENT_IDS = ("consumer", "c", "billing-é", "\U0001f600", "\uffee")  # the last two: Java sorts them by UTF-16 units

Group = dict[str, Any]
"""`assignor`, and `rounds` of `topics` and `members`: what `Assignors.java` reads."""


def random_group(random: Random, assignor: str) -> Group:
    cast = _Cast(random, assignor)
    rounds = [cast.play_round(generation) for generation in range(random.choice((1, 3, 5)))]
    return {"assignor": assignor, "rounds": rounds}


class _Member:
    """A consumer between the rounds."""

    def __init__(self, random: Random, racks: Sequence[str], assignor: str) -> None:
        self.id = f"{random.choice(CLIENT_IDS)}-{random.getrandbits(64):016x}"
        self.instance_id = f"instance-{random.randrange(100_000)}" if random.random() < 0.3 else None
        self.rack = random.choice((*racks, "elsewhere", "")) if racks else None
        self.version = random.choices((3, 2, 1, 0), (12, 1, 1, 1))[0]
        self.assignor = ASSIGNORS[assignor]()
        self.owned: Sequence[TopicPartition] = ()
        self.generation: int | None = None
        self.topics: Sequence[str] = ()

    def subscription(self) -> MemberSubscription:
        user_data = self.assignor.user_data()
        return MemberSubscription(self.topics, user_data, self.owned, self.generation, self.rack, self.instance_id)


class _Cast:
    """One group: its topics and its members."""

    def __init__(self, random: Random, assignor: str) -> None:
        self.random = random
        self.assignor = assignor
        self.leader = ASSIGNORS[assignor]()
        self.racks = [f"rack-{number}" for number in range(random.choice((0, 0, 2, 3, 4)))]
        self.names = [f"topic{number}" for number in range(random.choice((1, 2, 3, 8)))]
        self.same_sizes = random.random() < 0.5
        self.size = random.randrange(1, 12)
        self.replicas = random.choice((1, 2, 3))
        self.differ = random.random() < 0.6
        self.topics: dict[str, list[frozenset[str]]] = {}
        for name in self.names:
            self._grow(name)
        self.members: list[_Member] = []
        for _ in range(random.choice((1, 2, 3, 5, 8, 20))):
            self._join()

    def _grow(self, name: str) -> None:
        random = self.random
        size = self.size if self.same_sizes else random.randrange(0, 12)
        partitions = self.topics.setdefault(name, [])
        for _ in range(size):
            count = min(self.replicas, len(self.racks))
            partitions.append(frozenset(random.sample(self.racks, count)))

    def _join(self) -> None:
        member = _Member(self.random, self.racks, self.assignor)
        self.members.append(member)
        self._subscribe(member)

    def _subscribe(self, member: _Member) -> None:
        random = self.random
        if not self.differ:
            member.topics = tuple(self.names)
        else:
            fewest = 0 if random.random() < 0.1 else 1
            member.topics = random.sample(self.names, random.randrange(fewest, len(self.names) + 1))
        if random.random() < 0.05:
            member.topics = (*member.topics, "missing")

    def play_round(self, generation: int) -> dict[str, Any]:
        if generation:
            self._between_rounds()
        said = {member.id: member.subscription() for member in self.members}
        told = [
            [member.id, member.instance_id, write_subscription(said[member.id], member.version).hex()]
            for member in self.members
        ]
        topics: Topics = {name: racks for name, racks in self.topics.items() if racks}
        division = self.leader.divide(topics, said_of(told))
        for member in self.members:
            if generation and self.random.random() < 0.08:
                continue  # it has missed this round
            member.owned = division[member.id]
            member.generation = generation
            member.assignor.on_assigned(member.owned, generation)
        return {"topics": {name: [sorted(racks) for racks in each] for name, each in topics.items()}, "members": told}

    def _between_rounds(self) -> None:
        random = self.random
        for member in list(self.members):
            if len(self.members) > 1 and random.random() < 0.15:
                self.members.remove(member)
            elif random.random() < 0.1:
                self._subscribe(member)
        for _ in range(random.choice((0, 0, 1, 2, 4))):
            self._join()
        if random.random() < 0.3:
            self._grow(random.choice(self.names))
        if random.random() < 0.2:
            liar, other = random.choice(self.members), random.choice(self.members)
            liar.owned = [*liar.owned, *(claimed for claimed in other.owned if claimed not in liar.owned)]


def said_of(members: list[list[str]]) -> dict[str, MemberSubscription]:
    """As a leader reads what members have told it."""
    return {member_id: read_subscription(bytes.fromhex(told), instance_id) for member_id, instance_id, told in members}


Decided = dict[str, tuple[TopicPartition, ...]]


def decided_by_us(group: Group) -> list[Decided]:
    leader = ASSIGNORS[group["assignor"]]()
    rounds = []
    for played in group["rounds"]:
        topics = {name: [frozenset(racks) for racks in each] for name, each in played["topics"].items()}
        division = leader.divide(topics, said_of(played["members"]))
        rounds.append({member_id: tuple(sorted(partitions)) for member_id, partitions in division.items()})
    return rounds


RoundOfKafka = dict[str, list[str | None]]
"""For each member: the assignment, and the user data of its assignor after it, in hexadecimal digits."""


def decided_by_kafka(groups: Sequence[Group]) -> Iterator[list[RoundOfKafka | None]]:
    """None for a round in which Kafka's assignor fails."""
    source = Path(__file__).with_name("Assignors.java")
    lines = "".join(json.dumps(group) + "\n" for group in groups)
    for line in java(str(source), input=lines, java_options=("-XX:+UseSerialGC",)).stdout.splitlines():
        yield json.loads(line)


def read_decided(round_of_kafka: RoundOfKafka) -> Decided:
    return {
        member_id: tuple(sorted(read_assignment(bytes.fromhex(assignment or ""))))
        for member_id, (assignment, _) in round_of_kafka.items()
    }


def main(seed: int, count: int) -> None:
    random = Random(seed)
    groups = [random_group(random, assignor) for assignor in ASSIGNORS for _ in range(count)]
    for group, rounds in zip(groups, decided_by_kafka(groups), strict=True):
        print(json.dumps({**group, "decided": rounds}, separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
