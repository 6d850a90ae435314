"""The assignors by the names under which settings ask for them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.client.membership.assignors.assignor import Assignor
from ottla.client.membership.assignors.range import RangeAssignor
from ottla.client.membership.assignors.round_robin import RoundRobinAssignor
from ottla.client.membership.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

ASSIGNORS: Final[Mapping[str, Callable[[], Assignor]]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""By the names that members of a group agree on."""

_JAVA_PACKAGE: Final = "org.apache.kafka.clients.consumer."


def assignors_for(strategy: Iterable[str | Assignor]) -> dict[str, Assignor]:
    """Fresh assignors by name, in order of preference. A Java class of Kafka's stands for ours of the same rule.

    Raises ValueError for an unknown or repeated name, or none at all.
    """
    chosen: dict[str, Assignor] = {}
    for named in strategy:
        assignor = _make(named) if isinstance(named, str) else named
        if assignor.name in chosen:
            raise ValueError(f"partition.assignment.strategy names the assignor {assignor.name!r} twice")
        chosen[assignor.name] = assignor
    if not chosen:
        raise ValueError("partition.assignment.strategy names no assignor")
    return chosen


def _make(name: str) -> Assignor:
    if name in ASSIGNORS:
        return ASSIGNORS[name]()
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor):
        if name == _JAVA_PACKAGE + assignor.__name__:
            return assignor()
    raise ValueError(f"unknown assignor {name!r} in partition.assignment.strategy; known are {', '.join(ASSIGNORS)}")
