"""Asks the controller to change the ISR of partitions that this node leads (AlterPartition, KIP-497).

Who belongs into it is the partition machine's to say (`machines.partition.leader`). Proposals of all partitions that
come while a request is under way share the next one. What the controller does not answer is asked again: it may have
been carried out, which the partition epoch tells. What goes wrong with one partition costs the others nothing.
"""

import logging
from typing import TYPE_CHECKING, Final

from ottla.base.ids import Uuid
from ottla.base.ports import Timer
from ottla.broker.partitions.partition import Partition
from ottla.machines.metadata.image.partition_image import RECOVERED
from ottla.machines.partition.leader import IsrProposal, LeaderState
from ottla.runtime.apart import apart, ask_surely, later
from ottla.runtime.channels import THIS_NODE, ControllerChannel, Failed, Then, newest_version
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)
_RETRY_S: Final = 0.05

_Asked = dict[tuple[Uuid, int], tuple[Partition, IsrProposal]]


class IsrChanges:
    """`start` begins to look for followers that lag; `stop` ends that. `expansions` and `shrinks` are counted."""

    def __init__(self, partitions: "Partitions", world: World, controller: ControllerChannel) -> None:
        self._partitions = partitions
        self._timers = world.timers
        self._clock = world.clock
        self._controller = controller
        self._unsent: dict[Partition, IsrProposal] = {}
        self._is_asking = False
        self._is_due = False
        self._timer: Timer | None = None
        self.expansions = 0
        self.shrinks = 0

    def start(self) -> None:
        interval_s = self._partitions.surroundings.max_lag_ms / 2 / 1000
        self._timer = self._timers.every(interval_s, self.shrink)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What is wanted

    def on_fetched(self, partition: Partition, replica: int) -> None:
        """A follower out of the ISR has fetched: maybe it is in sync now."""
        state = partition.state
        proposal = state.propose_to_expand(replica) if state is not None else None
        if proposal is not None:
            self._propose(partition, proposal)

    def shrink(self) -> None:
        """Looks for followers that were not caught up for `replica.lag.time.max.ms`."""
        now_ms = self._clock.now_ms()
        for partition in list(self._partitions.values()):
            state = partition.state
            if state is not None and state.followers:
                apart(self._timers, self._shrink, partition, state, now_ms)

    def _shrink(self, partition: Partition, state: LeaderState, now_ms: int) -> None:
        proposal = state.propose_to_shrink(now_ms)
        if proposal is not None:
            late = sorted(set(state.isr) - set(proposal.isr))
            _log.debug(
                "%s: replicas %s lag behind; removing them from the ISR %s", partition.name, late, list(state.isr)
            )
            self._propose(partition, proposal)
        self._on_moved(partition, has_moved=state.on_time(now_ms))

    def on_brokers_changed(self) -> None:
        """Brokers came or went, which may have been waited for."""
        now_ms = self._clock.now_ms()
        for partition in list(self._partitions.values()):
            if partition.state is not None and partition.state.followers:
                self._on_moved(partition, has_moved=partition.state.on_time(now_ms))
                self._partitions.purgatory.wake(partition)  # DeleteRecords waits for those that are alive.

    def _on_moved(self, partition: Partition, *, has_moved: bool) -> None:
        if partition.apply_high_watermark(has_moved):
            self._partitions.purgatory.wake(partition)

    # Asking

    def _propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self._unsent[partition] = proposal
        self._ask_in(0)

    def _ask_in(self, delay_s: float) -> None:
        if not self._is_due and not self._is_asking and self._unsent:
            self._is_due = True
            later(self._timers, delay_s, self._ask)

    def _ask(self) -> None:
        self._is_due = False
        asked: _Asked = {
            (partition.topic_id, partition.name.partition): (partition, proposal)
            for partition, proposal in self._unsent.items()
            if partition.state is not None and partition.state.proposal is proposal
        }
        self._unsent.clear()
        identity = self._partitions.identity
        if not asked:
            return
        if identity.broker_epoch < 0:
            self._ask_again(asked)  # Not registered yet: the controller would not know us.
            return
        self._is_asking = True
        ask_surely(
            self._timers,
            lambda *heard: self._send(asked, *heard),
            lambda reply: self._on_reply(asked, reply),
            lambda error: self._on_no_reply(asked, error),
        )

    def _send(self, asked: _Asked, then: Then, failed: Failed) -> None:
        request = _request(asked, self._partitions.identity.node_id, self._partitions.identity.broker_epoch)
        self._controller.ask(request, newest_version(request), THIS_NODE, then, failed)

    def _on_no_reply(self, asked: _Asked, error: ErrorCode) -> None:
        _log.debug("the controller did not answer for the ISR of %s partitions: %s", len(asked), error.name)
        self._is_asking = False
        self._ask_again(asked)

    def _ask_again(self, asked: _Asked) -> None:
        for partition, proposal in asked.values():
            self._unsent.setdefault(partition, proposal)
        self._ask_in(_RETRY_S)

    def _on_reply(self, asked: _Asked, reply: AlterPartitionResponse) -> None:
        if reply.error_code:
            self._on_no_reply(asked, ErrorCode(reply.error_code))
            return
        self._is_asking = False
        again: _Asked = {}
        for topic in reply.topics:
            for answer in topic.partitions:
                key = topic.topic_id, answer.partition_index
                if key in asked:
                    apart(self._timers, self._take, key, asked, answer, again)
        if again:
            self._ask_again(again)
        else:
            self._ask_in(0)

    def _take(
        self, key: tuple[Uuid, int], asked: _Asked, answer: AlterPartitionResponse.PartitionData, again: _Asked
    ) -> None:
        again[key] = asked[key]  # Unless the answer says, in full, that it is not to be.
        if not self._is_to_be_repeated(*asked[key], answer):
            del again[key]

    def _is_to_be_repeated(
        self, partition: Partition, proposal: IsrProposal, answer: AlterPartitionResponse.PartitionData
    ) -> bool:
        state, error = partition.state, ErrorCode(answer.error_code)
        if state is None or state.leader_epoch != proposal.leader_epoch:
            return False
        if error:
            _log.debug("%s: the controller refused the ISR %s: %s", partition.name, list(proposal.isr), error.name)
            return state.on_proposal_refused(proposal, error)
        if answer.leader_epoch == state.leader_epoch:
            self.expansions += len(answer.isr) > len(state.isr)
            self.shrinks += len(answer.isr) < len(state.isr)
            has_moved = state.on_proposal_taken(proposal, answer.partition_epoch)
            self._on_moved(partition, has_moved=has_moved)
        return False


def _request(asked: _Asked, node_id: int, broker_epoch: int) -> AlterPartitionRequest:
    topics: dict[Uuid, AlterPartitionRequest.TopicData] = {}
    for (topic_id, index), (_, proposal) in asked.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[])
        topic.partitions.append(
            AlterPartitionRequest.PartitionData(
                partition_index=index,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    AlterPartitionRequest.BrokerState(
                        broker_id=replica, broker_epoch=broker_epoch if replica == node_id else epoch
                    )
                    for replica, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
                ],
                leader_recovery_state=RECOVERED,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))
