"""What the driver of the metadata log needs of the machine that decides."""

from collections.abc import Sequence
from typing import Protocol

from ottla.machines.decision import Decision
from ottla.wire.message import Message


class ControllerMachine(Protocol):
    """What the driver needs of a controller; see `ottla.machines.metadata.controller.controller`."""

    next_offset: int
    """The offset that the next record gets, which the driver says before every decision."""
    kraft_version: int

    def activate(self, bootstrap: Sequence[Message]) -> Decision[None]:
        """What it writes first."""
        ...

    def replay(self, record: Message) -> None:
        """Takes in, at once, what it has just decided."""
        ...
