"""Producer ids for idempotent producers, from blocks that the controller gives out (KIP-730).

An id is used once in the life of a cluster. The controller hands out a thousand at a time; a block that is not used up
when the node stops is lost, which is what ids of 64 bits are for. Requests that find no block wait for the next one.
"""

from collections import deque
from collections.abc import Callable

from ottla.base.ports import Timers
from ottla.broker.cluster.cluster_metadata import NodeIdentity
from ottla.runtime.apart import apart, ask_as_node
from ottla.runtime.attribution import attributed
from ottla.runtime.channels import ControllerChannel
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse

Taken = Callable[[ErrorCode, int], None]
"""An id, or why there is none."""


class ProducerIds:
    def __init__(self, identity: NodeIdentity, controller: ControllerChannel, timers: Timers) -> None:
        self._timers = timers
        self._identity = identity
        self._controller = controller
        self._next = 0
        self._end = 0
        self._is_asking = False
        self._waiting: deque[Taken] = deque()

    def take(self, then: Taken) -> None:
        """Hands the next id to `then`, at once if there is one."""
        if self._next < self._end:
            self._next += 1
            then(ErrorCode.NONE, self._next - 1)
            return
        self._waiting.append(attributed(then))
        if not self._is_asking:
            self._ask()

    def _ask(self) -> None:
        self._is_asking = True
        request = AllocateProducerIdsRequest(broker_id=self._identity.node_id, broker_epoch=self._identity.broker_epoch)
        ask_as_node(self._timers, self._controller, request, self._on_block, self._on_error)

    def _on_block(self, block: AllocateProducerIdsResponse) -> None:
        if block.error_code:
            self._on_error(ErrorCode(block.error_code))
            return
        self._is_asking = False
        self._next, self._end = block.producer_id_start, block.producer_id_start + block.producer_id_len
        waiting, self._waiting = self._waiting, deque()
        for then in waiting:
            apart(self._timers, self.take, then)

    def _on_error(self, _error: ErrorCode) -> None:
        """Clients try again: the controller may be elsewhere by then."""
        self._is_asking = False
        waiting, self._waiting = self._waiting, deque()
        for then in waiting:
            apart(self._timers, then, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
