"""What the clients talk to: a node of ours, or Apache Kafka with `OTTLA_TEST_TARGET=apache-kafka`.

The second is how these tests are themselves tested: what fails against Apache Kafka expects something wrong.
"""

import os
from pathlib import Path
from typing import Protocol, Self

from ottla.testing.node import RunningNode


class Target(Protocol):
    """A node that can be ended and started again on the same address and data."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def data(self) -> Path: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *problem: object) -> None: ...


def a_target(**config: object) -> Target:
    """A node that is not started yet; settings are given with underscores for their dots."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    match os.environ.get("OTTLA_TEST_TARGET", "ottla"):
        case "ottla":
            return RunningNode(config=settings)
        case "apache-kafka":
            from tests.interop.apache_kafka import ApacheKafka

            return ApacheKafka(config=settings)
        case other:
            raise ValueError(f"OTTLA_TEST_TARGET is {other!r}, and neither ottla nor apache-kafka")
