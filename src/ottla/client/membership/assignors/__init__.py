"""The assignors that consumers name in `partition.assignment.strategy`.

- `assignor.py`: what an assignor is given and gives
- `range.py`, `round_robin.py`: without memory
- `sticky.py`: who has a claim on what; `sticky_equal.py` and `sticky_unequal.py` divide accordingly
- `sticky_data.py`, `sticky_racks.py`: what their members say of themselves; who is near what
- `java_order.py`: orders that Apache Kafka's assignors take from Java
"""

from collections.abc import Callable, Mapping
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
