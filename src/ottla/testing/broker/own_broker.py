"""`Broker`: a real broker for one block of code, in a process of its own, on a free port, gone at the end.

    from ottla.testing import Broker

    with Broker({"num.partitions": 3}) as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
        ...

It is up in a fifth of a second. What it stores is in a temporary directory, which goes with it.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from secrets import token_urlsafe
from types import TracebackType
from typing import Final, Self

from ottla.testing.broker.fault_control import FaultControl, FaultRefused
from ottla.testing.broker.faults import Faults
from ottla.testing.broker.secured_listener import SecuredListeners
from ottla.testing.broker.topics import create_topic, delete_topic
from ottla.testing.free_ports import free_port
from ottla.testing.node import NodeError, RunningNode

_POLL_S: Final = 0.005
_STRICT: Final = ("--strict",)
"""A test with a mistyped setting would test something else."""
_CONTROL_PORT: Final = re.compile(r"faults +http://127\.0\.0\.1:(\d+)")


class Broker(Faults):
    """`settings` are a broker's, under Kafka's names. A `directory` that is given outlives the broker.

    A setting that no broker has is refused when it starts, with the nearest name.
    `security` is the protocol that clients have to speak: SSL, SASL_PLAINTEXT or SASL_SSL. Port 0 is one of its choice.
    It is a cluster of one node; `Cluster` makes one of several.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        directory: Path | None = None,
        faults: bool = True,
        security: str | None = None,
        port: int = 0,
    ) -> None:
        super().__init__()
        self._token = token_urlsafe(16)
        self._port_of_faults = 0
        self._has_faults = faults
        self._secured = None if security is None else SecuredListeners(security)
        if self._secured is not None:
            # The port of the plain listener stays, too.
            listeners = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:0"
            settings = {**self._secured.broker(listeners), **(settings or {})}
        self._node = RunningNode(directory, config=settings, port=port, options=_STRICT)
        if faults:
            self._node.options = (*_STRICT, "--faults", "0")
            self._node.environment["OTTLA_FAULTS_TOKEN"] = self._token

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`. It stays the same over restarts."""
        return self._node.bootstrap if self._secured is None else self._secured.bootstrap

    @property
    def client_settings(self) -> dict[str, str]:
        """What a client needs to connect, under Kafka's names; with `security`, certificates and a login, too."""
        return {"bootstrap.servers": self.bootstrap} if self._secured is None else dict(self._secured.client)

    @property
    def log(self) -> Path:
        """The file with what the node has printed."""
        return self._node.log

    @property
    def pid(self) -> int | None:
        return self._node.pid

    @property
    def is_running(self) -> bool:
        return self._node.is_running

    # Its life

    def start(self) -> None:
        """Starts it, also after `stop` or `kill`: at the same address, with the same data."""
        if not self.is_running:
            self._node.abandon()  # it may have ended by itself
        self._node.start()
        self._is_time_moved = False
        if self._has_faults and not self._port_of_faults:
            self._port_of_faults = self._printed_port()
            self._node.options = (*_STRICT, "--faults", str(self._port_of_faults))

    def _printed_port(self) -> int:
        """Of the control port. A node whose own port was given may answer a moment before it prints."""
        deadline_s = time.monotonic() + self._node.start_timeout_s
        while (found := _CONTROL_PORT.search(self.log.read_text(errors="replace"))) is None:
            if time.monotonic() > deadline_s:
                raise NodeError(f"the node did not say where its control port is\n{self._node.end_of_log()}")
            time.sleep(_POLL_S)
        return int(found[1])

    def stop(self) -> None:
        """Stops it in good order, as SIGTERM does."""
        self.is_harmed = True
        self._node.stop()

    def kill(self) -> None:
        """Kills it, as `kill -9` does: nothing is flushed or written any more."""
        self.is_harmed = True
        self._node.kill()

    def restart(self, *, clean: bool = True, down_ms: int = 0) -> None:
        """Stops it, or kills it if not `clean`, and starts it again after a while. It has no faults then."""
        if clean:
            self.stop()
        else:
            self.kill()
        time.sleep(down_ms / 1000)
        self.start()

    def close(self) -> None:
        """Ends it, and removes the directory if it was not given."""
        self._node.close()

    def heal(self) -> None:
        """Undoes what was done to it: it runs, has no faults, and goes by the real time. What it stores stays."""
        if not self.is_running:
            self.start()
        elif self._has_faults:
            self.clear_faults()
        if self._is_time_moved:
            self.restart()
        self.is_harmed = False

    # Faults

    @property
    def _control(self) -> FaultControl:
        if not self._has_faults:
            raise FaultRefused("this broker was made with faults=False")
        if not self.is_running:
            raise FaultRefused("the broker does not run")
        return FaultControl(self._port_of_faults, self._token)

    # Topics

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Raises `TopicRefused` when the broker says no."""
        create_topic(self._node.address, name, partitions=partitions, settings=settings)

    def delete_topic(self, name: str) -> None:
        delete_topic(self._node.address, name)
