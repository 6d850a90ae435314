"""A broker that somebody else runs, for tests that are to start no process: `OTTLA_BROKER=host:port`.

It may be any Kafka broker. Faults need a node that was started with `ottla start --faults PORT`, its control port in
`OTTLA_FAULTS` and its token in `OTTLA_FAULTS_TOKEN`.
"""

from collections.abc import Mapping

from ottla.base.errors import OttlaError
from ottla.testing.broker.fault_control import FaultControl, FaultRefused
from ottla.testing.broker.faults import Faults
from ottla.testing.broker.topics import Address, create_topic, delete_topic

BROKER = "OTTLA_BROKER"
FAULTS = "OTTLA_FAULTS"
TOKEN = "OTTLA_FAULTS_TOKEN"


class NotOurBroker(OttlaError):
    """Something was asked of a broker that can only be done to one that the test has started itself."""


class GivenBroker(Faults):
    """Has what `Broker` has, as far as it can be done over a connection. The other methods raise `NotOurBroker`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.bootstrap = environment[BROKER]
        self._address = _first_address(self.bootstrap)
        self._port_of_faults = environment.get(FAULTS, "")
        self._token = environment.get(TOKEN, "")
        if self._port_of_faults and not (self._port_of_faults.isdecimal() and self._token):
            raise NotOurBroker(f"{FAULTS} must be a port on this machine, and {TOKEN} the token that it takes")

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Raises `TopicRefused` when the broker says no."""
        create_topic(self._address, name, partitions=partitions, settings=settings)

    def delete_topic(self, name: str) -> None:
        delete_topic(self._address, name)

    def start(self) -> None:
        raise _not_ours("started")

    def stop(self) -> None:
        raise _not_ours("stopped")

    def kill(self) -> None:
        raise _not_ours("killed; restart(clean=False) does the same to what it stores")

    def restart(self, *, clean: bool = True, down_ms: int = 0) -> None:
        """The process stays; the node in it stops, or is let go of as in a crash, and another takes its place."""
        self._ask("restart", clean=clean, down_ms=down_ms)
        self._is_time_moved = False

    def close(self) -> None:
        """It stays as it is."""

    def heal(self) -> None:
        """Undoes what was done to it: it has no faults, and goes by the real time. What it stores stays."""
        self.clear_faults()
        if self._is_time_moved:
            self.restart()
        self.is_harmed = False

    @property
    def _control(self) -> FaultControl:
        if not self._port_of_faults:
            raise FaultRefused(
                f"the broker comes from {BROKER}: for faults start it with `ottla start --faults PORT`, "
                f"and give the port in {FAULTS} and the token in {TOKEN}"
            )
        return FaultControl(int(self._port_of_faults), self._token)


def _not_ours(what: str) -> NotOurBroker:
    return NotOurBroker(f"the broker comes from {BROKER}: only one that the test starts itself can be {what}")


def _first_address(bootstrap: str) -> Address:
    host, colon, port = bootstrap.split(",")[0].strip().rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise NotOurBroker(f"{BROKER} is {bootstrap!r}, and must be host:port")
    return host.strip("[]"), int(port)
