"""A topic and a group that reads it, with members in processes of their own: what tests of groups share."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from types import ModuleType

from tests.clients import confluent_client
from tests.clients.group_member import GroupMember
from tests.clients.records import Record
from tests.interop.target import Target

PARTITIONS = 4
SETTLED_WITHIN_S = 40.0

_numbers = count()


class Scene:
    """A topic, a group that reads it, and what was written so far."""

    def __init__(self, node: Target) -> None:
        self.node = node
        self.topic = f"topic-{next(_numbers)}"
        self.group_id = f"readers of {self.topic}"
        self.members: list[GroupMember] = []
        self._written: set[tuple[int, str]] = set()
        self._stack = ExitStack()
        confluent_client.Admin(node.bootstrap).create(self.topic, PARTITIONS, {})
        self._writer = confluent_client.Writer(node.bootstrap, self.topic)

    def member(self, client: ModuleType | str, **options: str | int) -> GroupMember:
        name = client if isinstance(client, str) else client.NAME
        member = GroupMember(name, self.node.bootstrap, self.group_id, self.topic, **options)
        self.members.append(member)
        return self._stack.enter_context(member)

    def write(self, per_partition: int = 20) -> None:
        values = {
            partition: [f"{partition}-{next(_numbers)}" for _ in range(per_partition)]
            for partition in range(PARTITIONS)
        }
        self._writer.write({partition: [Record(v.encode()) for v in of_it] for partition, of_it in values.items()})
        self._written |= {(partition, value) for partition, of_it in values.items() for value in of_it}

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLED_WITHIN_S
        while True:
            for member in self.members:
                member.listen()
                assert not member.has_died, f"a member died while the test waited until {what}"
            self.look()
            if is_so():
                return
            shown = [(sorted(member.partitions), len(member.read)) for member in self.members]
            assert time.monotonic() < deadline, f"waited in vain until {what}; partitions and records: {shown}"
            time.sleep(0.05)

    def look(self) -> None:
        """What else is to be seen to."""

    def settle(self, *members: GroupMember) -> None:
        """These are the group: they have all partitions, each has some, and no two have the same."""

        def is_settled() -> bool:
            owned = [partition for member in members for partition in member.partitions]
            return sorted(owned) == list(range(PARTITIONS)) and all(member.partitions for member in members)

        self.until(is_settled, "every partition has one member")

    def read_all(self) -> None:
        """Everything that was written has been read, in the order of each partition by each member."""

        def is_read() -> bool:
            return self._written <= {(partition, value) for m in self.members for partition, _, value in m.read}

        self.until(is_read, "everything is read")
        for member in self.members:
            assert member.problems == [], member.problems

    def read_twice(self) -> int:
        read = [(partition, offset) for member in self.members for partition, offset, _ in member.read]
        return len(read) - len(set(read))

    def close(self) -> None:
        self._stack.close()
