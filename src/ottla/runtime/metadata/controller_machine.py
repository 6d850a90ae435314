"""What the driver of the metadata log needs of the machine that decides."""

from collections.abc import Sequence
from typing import Protocol, Self

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

    def take_over_from(self, other: Self) -> None:
        """Goes on in the place of a controller that led until now: what no log says is known all the same."""
        ...

    def replay(self, record: Message) -> None:
        """Takes in, at once, what it has just decided."""
        ...
