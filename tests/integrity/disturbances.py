"""What goes on beside the lanes of a program, each on a thread of its own, until the lanes are done.

`Kills` ends a node as `kill -9` does and starts it again. `Changes` gives and takes rules of access, quotas, and those
settings of topics that say how a log is kept and not what is in it. The rules are of others than the lanes, and the
quotas of theirs: nothing may come of it but that they wait. But what nodes have learned of a connection's rights and
requests, and of the room in a segment, they must forget, again and again, while requests are on their way.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Event, Thread
from typing import Self

from ottla import Admin
from ottla.client.admin.access.acls import AclBinding, AclFilter, AclResourceType
from ottla.client.admin.access.quotas import QuotaEntity
from ottla.client.admin.configs import ConfigResource, ResourceType
from ottla.client.admin.operations import AclOperation
from ottla.client.errors import KafkaError
from tests.integrity.targets import PRINCIPAL, Target

_RATES = (2_000_000, 8_000_000, 40_000_000)
_PERCENTAGES = (30, 100)
_SETTINGS = {
    "flush.messages": ("1", "7"),
    "index.interval.bytes": ("0", "500"),
    "segment.bytes": ("1100000",),  # More than a batch may have.
    "segment.index.bytes": ("60", "1000"),
}
_ADMIN_WITHIN_S = 5.0


class Disturbance:
    """`count` is how often something happened. What it raises ends it, and is told by `problem`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._over = Event()
        self._thread = Thread(target=self._guarded, daemon=True)
        self.count = 0
        self.problem: str | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:
            self.problem = f"{type(self).__name__} ended: {type(error).__name__}: {error}"

    def _run(self) -> None:
        raise NotImplementedError


class Kills(Disturbance):
    """One node at a time. `is_whole` says whether every replica is in sync: mostly, but not always, that is awaited."""

    def __init__(self, target: Target, random: Random, is_whole: Callable[[], bool]) -> None:
        super().__init__(random)
        self._target = target
        self._is_whole = is_whole

    def _run(self) -> None:
        random = self._random
        while not self._over.wait(random.uniform(0.05, 0.8)) or not self.count:
            self._target.kill_one(random.choice(self._target.nodes))
            self.count += 1
            time.sleep(random.choice((0.0, 0.1, 0.5)))
            self._target.start()
            if random.random() < 0.7:
                while not self._over.is_set() and not self._is_whole():
                    time.sleep(0.05)


class Changes(Disturbance):
    def __init__(self, target: Target, random: Random, client_ids: list[str], topics: list[str]) -> None:
        super().__init__(random)
        self._target = target
        self._topics = topics
        entities = [QuotaEntity.of(client_id=name) for name in client_ids]
        self._entities = [*entities, QuotaEntity.of(user=f"CN={PRINCIPAL}")]

    def _run(self) -> None:
        with Admin(bootstrap_servers=self._target.bootstrap) as admin:
            while not self._over.wait(self._random.uniform(0.0, 0.15)):
                with suppress(KafkaError):  # a node may have been killed
                    self._change(admin)
                    self.count += 1

    def _change(self, admin: Admin) -> None:
        random = self._random
        kind = random.random()
        if kind < 0.25:
            topic = ConfigResource(ResourceType.TOPIC, random.choice(self._topics))
            name = random.choice([*_SETTINGS])
            value = random.choice((None, *_SETTINGS[name]))
            admin.incremental_alter_configs({topic: {name: value}}, timeout=_ADMIN_WITHIN_S).raise_first()
            return
        if kind < 0.4:
            self._limit(admin, "request_percentage", random.choice((None, None, *_PERCENTAGES)))
            return
        if kind < 0.65:
            self._limit(admin, "producer_byte_rate", random.choice((None, None, *_RATES)))
            return
        who = f"User:other-{random.randrange(3)}"
        topic = random.choice(("plain", "stored", "compacted", "forbidden"))
        if random.random() < 0.6:
            rule = AclBinding(AclResourceType.TOPIC, topic, who, AclOperation.WRITE)
            admin.create_acls([rule], timeout=_ADMIN_WITHIN_S).raise_first()
        else:
            admin.delete_acls([AclFilter(principal=who)], timeout=_ADMIN_WITHIN_S).raise_first()

    def _limit(self, admin: Admin, quota: str, most: float | None) -> None:
        entity = self._random.choice(self._entities)
        admin.alter_client_quotas({entity: {quota: most}}, timeout=_ADMIN_WITHIN_S).raise_first()
