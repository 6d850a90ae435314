"""A broker that somebody else runs, for tests that are to start no process: `OTTLA_BROKER=host:port`."""

from collections.abc import Mapping

from ottla.base.errors import OttlaError
from ottla.testing.broker.topics import Address, create_topic, delete_topic

VARIABLE = "OTTLA_BROKER"


class NotOurBroker(OttlaError):
    """Something was asked of a broker that can only be done to one that the test has started itself."""


class GivenBroker:
    """Has what `Broker` has, as far as it can be done over a connection. The other methods raise `NotOurBroker`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._address = _first_address(bootstrap)

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
        raise _not_ours("killed")

    def restart(self, *, clean: bool = True) -> None:
        raise _not_ours("restarted" if clean else "killed")

    def close(self) -> None:
        """It stays as it is."""


def _not_ours(what: str) -> NotOurBroker:
    return NotOurBroker(f"the broker comes from {VARIABLE}: only one that the test starts itself can be {what}")


def _first_address(bootstrap: str) -> Address:
    host, colon, port = bootstrap.split(",")[0].strip().rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise NotOurBroker(f"{VARIABLE} is {bootstrap!r}, and must be host:port")
    return host.strip("[]"), int(port)
