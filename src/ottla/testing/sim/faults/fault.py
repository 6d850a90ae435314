"""One thing that goes wrong: as data, so that a run can be repeated with some of its faults left out."""

from typing import Final, NamedTuple

BEFORE_ALL: Final = -1
"""When a fault comes that begins with the first start of the cluster."""


class Fault(NamedTuple):
    """`number` is its place among the seed's faults, whichever of them are left out."""

    number: int
    at_ms: int
    """Since the cluster was up; or `BEFORE_ALL`."""
    kind: str
    node_id: int
    for_ms: int
    amount: int
    """What it means depends on the kind: how slow, by how much, which direction."""

    def __str__(self) -> str:
        return f"#{self.number} at {self.at_ms / 1000:.1f} s: {self.kind} of node {self.node_id} for {self.for_ms} ms"
