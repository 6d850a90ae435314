"""Whether another controller runs with this node's id: it is looked for at other addresses that the id is known at.

Two controllers with one id have two votes in one election. Where the voters are a setting, and so known by their ids
alone, the leader also counts what either of them has as what one voter has, and could lose what it took for committed.
Apache Kafka does not look, and runs both unless the first one leads.

The question is a pre-vote (KIP-996), asked of the voter with this id. It changes nothing at the other end unless its
epoch is newer than the epoch there: so it is asked with epoch 0, and again with the epoch that the answer names, as
Kafka compares epochs before ids. INVALID_VOTER_KEY means that the controller there has another id. The address may lead
back to this node, by another name or through a gateway. A node knows its own question by the number that stands in the
place of the offset, and refuses it. A controller that does not answer in time is taken for gone.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable
from typing import Any, Final

from ottla.machines.raft.voters import ReplicaKey
from ottla.runtime.channels import newest_version
from ottla.runtime.metadata.storage.store import PARTITION
from ottla.runtime.peers.node_connections import ConnectionName, NodeAddress, NodeConnections
from ottla.wire import messages
from ottla.wire.errors import ErrorCode

_PURPOSE: Final = "same-id"
_MOST_QUESTIONS: Final = 4
"""The epoch may move on between a question and the next."""

Done = Callable[[bool], None]
"""Hears whether a controller with the id is there, which is not this node."""


class SameId:
    """Of one replica, `me`. One question is under way at a time."""

    def __init__(self, connections: NodeConnections, me: ReplicaKey, cluster_id: str, timeout_ms: int) -> None:
        self._connections = connections
        self._me = me
        self._cluster_id = cluster_id
        self._timeout_ms = timeout_ms
        self._number = -1

    def is_own_question(self, asked: messages.VoteRequest.PartitionData) -> bool:
        return bool(asked.last_offset == self._number and asked.pre_vote)

    def look_at(self, address: NodeAddress, number: int, done: Done) -> None:
        """`number` is one that no log ends at and no other node chooses."""
        self._number = number
        self._ask(address, 0, _MOST_QUESTIONS, done)

    def _ask(self, address: NodeAddress, epoch: int, questions_left: int, done: Done) -> None:
        line = ConnectionName(self._me.id, _PURPOSE)

        def end(is_there: bool) -> None:
            self._number = -1
            self._connections.drop(line)
            done(is_there)

        def then(response: Any) -> None:
            error, epoch_there = _answer_of(response)
            if error == ErrorCode.FENCED_LEADER_EPOCH and epoch_there > epoch and questions_left > 1:
                self._ask(address, epoch_there, questions_left - 1, done)
            else:
                end(error == ErrorCode.NONE)

        request = self._request(epoch)
        self._connections.ask(
            line,
            address,
            request,
            newest_version(request),
            then=then,
            failed=lambda _error: end(False),
            timeout_ms=self._timeout_ms,
        )

    def _request(self, epoch: int) -> messages.VoteRequest:
        partition = messages.VoteRequest.PartitionData(
            partition_index=0,
            replica_epoch=epoch,
            replica_id=self._me.id,
            replica_directory_id=self._me.directory_id,
            last_offset_epoch=0,
            last_offset=self._number,
            pre_vote=True,
        )
        return messages.VoteRequest(
            cluster_id=self._cluster_id,
            voter_id=self._me.id,
            topics=[messages.VoteRequest.TopicData(topic_name=PARTITION.topic, partitions=[partition])],
        )


def _answer_of(response: Any) -> tuple[int, int]:
    """The error, of the request or of its one partition, and the epoch at the other end."""
    if response.error_code or not response.topics:
        return response.error_code or ErrorCode.INVALID_REQUEST, -1
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.leader_epoch
