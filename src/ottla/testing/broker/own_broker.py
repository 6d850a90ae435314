"""`Broker`: a real broker for one block of code, in a process of its own, on a free port, gone at the end.

    from ottla.testing import Broker

    with Broker({"num.partitions": 3}) as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        ...

It is up in a fifth of a second. What it stores is in a temporary directory, which goes with it.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.testing.broker.topics import create_topic, delete_topic
from ottla.testing.node import RunningNode


class Broker:
    """`settings` are a broker's, under Kafka's names. A `directory` that is given outlives the broker.

    It is a cluster of one node. `bootstrap` may name several addresses once there are clusters of more.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, *, directory: Path | None = None) -> None:
        self._node = RunningNode(directory, config=settings)

    def __enter__(self) -> Self:
        self._node.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._node.close()

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`. It stays the same over restarts."""
        return self._node.bootstrap

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
        self._node.start()

    def stop(self) -> None:
        """Stops it in good order, as SIGTERM does."""
        self._node.stop()

    def kill(self) -> None:
        """Kills it, as `kill -9` does: nothing is flushed or written any more."""
        self._node.kill()

    def restart(self, *, clean: bool = True) -> None:
        """Stops it, or kills it if not `clean`, and starts it again."""
        if clean:
            self.stop()
        else:
            self.kill()
        self.start()

    def close(self) -> None:
        """Ends it, and removes the directory if it was not given."""
        self._node.close()

    # Topics

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Raises `TopicRefused` when the broker says no."""
        create_topic(self._node.address, name, partitions=partitions, settings=settings)

    def delete_topic(self, name: str) -> None:
        delete_topic(self._node.address, name)
