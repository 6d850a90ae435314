"""A client program in a simulated cluster. It has lives: it may be killed at any moment, and comes back."""

from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, ClassVar, Final

from ottla.client.errors import ClientClosed, KafkaError
from ottla.client.promise import Promise, spawn
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.workloads.history import History

_BACK_AFTER_US: Final = 500_000
_LINGERS: Final = 0.5
"""How many of those that may linger do."""
_LONGEST_SLEEP_US: Final = 6_000_000
_ZOMBIE_US: Final = 4_000_000
"""How long a zombie continues."""

FAST: Final[dict[str, object]] = {
    "request.timeout.ms": 4_000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "socket.connection.setup.timeout.ms": 2_000,
    "metadata.max.age.ms": 20_000,
}
"""Clients that are less patient than Kafka's defaults, so that more happens in a simulated minute."""


class Settles(IntEnum):
    """When a program is told to finish: first those that write, then those that have to have read it all."""

    FIRST = 0
    WHEN_ALL_IS_WRITTEN = 1
    WHEN_ALL_IS_READ = 2


class Actor:
    """`is_settled`: it was told to finish, and has nothing more to do."""

    settles: ClassVar[Settles] = Settles.FIRST
    may_linger: ClassVar[bool] = False
    """Whether a process that was taken for dead may wake up again, and continue beside the next one: a zombie."""

    def __init__(self, cluster: SimulatedCluster, history: History, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.history = history
        self.chance = cluster.simulation.chance(f"actor {name}")
        self.lives = 0
        self.is_finishing = False
        self.is_settled = False
        self.errors: dict[str, int] = {}
        """How often the program met which error."""
        self.client: ClientInSimulation
        self._is_alive = False

    def begin(self) -> None:
        """The next life."""
        self.lives += 1
        self._is_alive = True
        self.client = self.cluster.client(f"{self.name} {self.lives}")
        self._begin_life()

    def kill(self) -> None:
        """Its process dies, or seems to, and another is started soon."""
        if not self._is_alive or self.is_settled:
            return
        if self.may_linger and not self.is_finishing and self.chance.random() < _LINGERS:
            self._linger()
        else:
            self._end_life()

    def finish(self) -> None:
        """It brings to an end what it does, and begins nothing new."""
        self.is_finishing = True

    @property
    def life_name(self) -> str:
        return f"{self.name}.{self.lives}"

    @property
    def client_settings(self) -> dict[str, object]:
        return {**self.client.settings, "client.id": self.name, **FAST}

    def _begin_life(self) -> None:
        raise NotImplementedError

    def _run(self, life: Coroutine[Promise[Any], None, None]) -> None:
        """Runs a life. One that raises an error of Kafka's is over, and the next begins; other errors are bugs."""
        number = self.lives
        spawn(life).on_done(lambda life: self._on_life_over(life, number))

    def _on_life_over(self, life: Promise[None], number: int) -> None:
        if number != self.lives:
            self._on_zombie_over(life)
            return
        if life.error is None:
            self.is_settled = True
            self._is_alive = False
            self.client.kill()
            return
        self.note_error(life.error)
        if not isinstance(life.error, KafkaError):
            self.history.violated("no client raises", f"{self.name}: {life.error!r}")
        agenda = self.cluster.simulation.agenda
        agenda.call_at(agenda.clock.elapsed_us(), self._end_life)

    def _on_zombie_over(self, life: Promise[None]) -> None:
        """It was fenced, or was done before the next life had asked for its place."""
        if life.error is not None:
            self.note_error(life.error)
            if not isinstance(life.error, KafkaError):
                self.history.violated("no client raises", f"{self.name}: {life.error!r}")

    def note_error(self, error: BaseException) -> None:
        if not isinstance(error, ClientClosed):
            name = type(error).__name__
            self.errors[name] = self.errors.get(name, 0) + 1

    def _end_life(self) -> None:
        if not self._is_alive:
            return
        self._is_alive = False
        self._report_problems()
        self.client.kill()
        agenda = self.cluster.simulation.agenda
        agenda.call_at(agenda.clock.elapsed_us() + _BACK_AFTER_US, self.begin)

    def _linger(self) -> None:
        """The process is stopped for a while, and the next one begins. Then it continues, and knows nothing of that."""
        self._is_alive = False
        client, agenda = self.client, self.cluster.simulation.agenda
        now_us = agenda.clock.elapsed_us()
        wakes_us = now_us + self.chance.randrange(_LONGEST_SLEEP_US)
        client.process.stop()
        agenda.call_at(now_us + _BACK_AFTER_US, self.begin)
        agenda.call_at(wakes_us, client.process.resume)
        agenda.call_at(wakes_us + _ZOMBIE_US, client.kill)

    def _report_problems(self) -> None:
        for problem in self.client.problems:
            self.history.violated("no client reports a bug", f"{self.name}: {problem!r}")
