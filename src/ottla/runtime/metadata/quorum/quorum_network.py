"""What a replica of the metadata log sends to others, as Kafka's replicas send it (KIP-595, KIP-853).

Where a controller listens is known from the voters, from `controller.quorum.voters` or `.bootstrap.servers`, and from
what others tell of the leader. It may have several listeners, in any order; it is asked at the one that is the first of
`controller.listener.names` here, whose protocol this node speaks to controllers. Votes and what a leader tells go over
one connection to each voter, fetches over another, as a fetch waits for something to come.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla import __version__
from ottla.machines.raft.events import NOBODY, AskForVote, LogEnd, TellOfEnd, TellOfEpoch
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import Voter, VoterSet
from ottla.runtime.channels import Failed, Then, newest_version
from ottla.runtime.metadata.quorum.quorum_log import QuorumRefusals
from ottla.runtime.metadata.quorum.same_id import SameId
from ottla.runtime.metadata.storage.store import PARTITION, TOPIC_ID
from ottla.runtime.peers.node_connections import ConnectionName, NodeAddress, NodeConnections
from ottla.wire import messages
from ottla.wire.message import Message

_RAFT: Final = "raft"
_FETCH: Final = "raft-fetch"
_MAX_WAIT_MS: Final = 500
_NOBODY_YET: Final = -2
"""Lines to controllers whose ids are not known are numbered from here downwards, as Kafka numbers them."""


class QuorumConfig(NamedTuple):
    """`controller.quorum.request.timeout.ms`, `.retry.backoff.ms`, `.fetch.max.bytes`, `.fetch.snapshot.max.bytes`."""

    request_timeout_ms: int = 2000
    retry_ms: int = 20
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    place_period_ms: int = 2000
    """How often a controller looks whether it is known as it is: as long as its fetch timeout, as in Kafka."""


class QuorumNetwork:
    """Of one replica. `bootstrap` are addresses to ask who leads, where the voters are not known yet.

    `listener` is the name of the listener at which controllers are asked.
    """

    def __init__(
        self,
        connections: NodeConnections,
        me: Voter,
        cluster_id: str,
        *,
        listener: str = "CONTROLLER",
        bootstrap: Sequence[NodeAddress] = (),
        config: QuorumConfig | None = None,
    ) -> None:
        self.config = config or QuorumConfig()
        self.cluster_id = cluster_id
        self._connections = connections
        self._me = me
        self.listener = listener
        self._bootstrap = list(bootstrap)
        self._announced: dict[int, dict[str, NodeAddress]] = {}
        """What other nodes said of where a controller listens, by the names of its listeners."""
        self._next = 0
        self.refusals = QuorumRefusals(cluster_id)
        self.same_id = SameId(connections, me.key, cluster_id, self.config.request_timeout_ms)
        self.on_foreign: Callable[[], None] = _nobody_listens
        """For the log, which may have no other controllers left: one of another cluster has answered."""

    # Where others are

    def learn(self, endpoints: Iterable[Any]) -> None:
        """Node endpoints of a response: those of the listener that was asked, as in Kafka."""
        for end in endpoints:
            self.learn_address(end.node_id, NodeAddress(end.host, end.port))

    def learn_address(self, node_id: int, address: NodeAddress) -> None:
        """A controller was found there."""
        self._announced.setdefault(node_id, {})[self.listener.upper()] = NodeAddress(address.host, address.port)

    def learn_of(self, node_id: int, endpoints: Iterable[Any]) -> None:
        """The listeners of a controller, as it names them itself."""
        if named := {end.name.upper(): NodeAddress(end.host, end.port) for end in endpoints}:
            self._announced[node_id] = named

    def address_of(self, leader_id: int, voters: VoterSet, listener: str = "") -> NodeAddress | None:
        """Of a leader: what was last heard of it is newer than what the log says of voters.

        `listener` is the name of the listener in question, if it is not the one at which this node asks controllers.
        """
        announced = self._announced.get(leader_id, {}).get((listener or self.listener).upper())
        return announced or self._address_in(voters.get(leader_id), listener)

    def _address_of_voter(self, voter: Voter) -> NodeAddress | None:
        """What the log or the setting says, as in Kafka: it may have been announced elsewhere in an earlier life."""
        return self._address_in(voter) or self._announced.get(voter.key.id, {}).get(self.listener.upper())

    def _address_in(self, voter: Voter | None, listener: str = "") -> NodeAddress | None:
        endpoint = voter.endpoint(listener or self.listener) if voter is not None else None
        return NodeAddress(endpoint.host, endpoint.port) if endpoint is not None else None

    def leader_for(self, raft: Raft, listener: str = "") -> tuple[int, NodeAddress | None]:
        """Who leads and where, for a replica that has asked at `listener`.

        Nobody where this node does not know the address: Apache Kafka's nodes end when they hear of a leader that
        neither the response nor their voters have an address of. A leader that is no voter any more is known by what
        it announced.
        """
        if raft.is_leader:
            return raft.leader_id, self._address_in(raft.me, listener)
        address = self.address_of(raft.leader_id, raft.voters, listener)
        return (raft.leader_id, address) if address is not None else (NOBODY, None)

    def known(self, voters: VoterSet) -> list[tuple[int, NodeAddress]]:
        """Everybody who may know who leads, with the number of the line to it."""
        of_voters = [(voter.key.id, self._address_of_voter(voter)) for voter in voters.others(self._me.key)]
        found = [(node_id, address) for node_id, address in of_voters if address is not None]
        numbers = {address: _NOBODY_YET - place for place, address in enumerate(self._bootstrap)}
        return found + [(number, address) for address, number in numbers.items()]

    def next_known(self, voters: VoterSet) -> tuple[int, NodeAddress] | None:
        """One after the other."""
        known = self.known(voters)
        self._next += 1
        return known[self._next % len(known)] if known else None

    def has_only_foreign(self, voters: VoterSet) -> bool:
        """Whether everybody who could know who leads is of another cluster."""
        return self.refusals.are_foreign(address for _, address in self.known(voters))

    # What is sent

    def ask_for_vote(self, ask: AskForVote, then: Then, failed: Failed) -> None:
        partition = messages.VoteRequest.PartitionData(
            partition_index=0,
            replica_epoch=ask.epoch,
            replica_id=self._me.key.id,
            replica_directory_id=self._me.key.directory_id,
            voter_directory_id=ask.voter.key.directory_id,
            last_offset_epoch=ask.log_end.epoch,
            last_offset=ask.log_end.offset,
            pre_vote=ask.pre_vote,
        )
        request = messages.VoteRequest(
            cluster_id=self.cluster_id,
            voter_id=ask.voter.key.id,
            topics=[messages.VoteRequest.TopicData(topic_name=PARTITION.topic, partitions=[partition])],
        )
        self._send(ask.voter, request, then, failed)

    def tell_of_epoch(self, tell: TellOfEpoch, then: Then, failed: Failed) -> None:
        partition = messages.BeginQuorumEpochRequest.PartitionData(
            partition_index=0,
            voter_directory_id=tell.voter.key.directory_id,
            leader_id=self._me.key.id,
            leader_epoch=tell.epoch,
        )
        request = messages.BeginQuorumEpochRequest(
            cluster_id=self.cluster_id,
            voter_id=tell.voter.key.id,
            topics=[messages.BeginQuorumEpochRequest.TopicData(topic_name=PARTITION.topic, partitions=[partition])],
            leader_endpoints=self._own_endpoints(messages.BeginQuorumEpochRequest.LeaderEndpoint),
        )
        self._send(tell.voter, request, then, failed)

    def tell_of_end(self, tell: TellOfEnd, voters: VoterSet, then: Then, failed: Failed) -> None:
        candidates = [voter for voter in map(voters.get, tell.preferred_successors) if voter is not None]
        partition = messages.EndQuorumEpochRequest.PartitionData(
            partition_index=0,
            leader_id=self._me.key.id,
            leader_epoch=tell.epoch,
            preferred_candidates=[
                messages.EndQuorumEpochRequest.ReplicaInfo(
                    candidate_id=voter.key.id, candidate_directory_id=voter.key.directory_id
                )
                for voter in candidates
            ],
        )
        request = messages.EndQuorumEpochRequest(
            cluster_id=self.cluster_id,
            topics=[messages.EndQuorumEpochRequest.TopicData(topic_name=PARTITION.topic, partitions=[partition])],
            leader_endpoints=self._own_endpoints(messages.EndQuorumEpochRequest.LeaderEndpoint),
        )
        self._send(tell.voter, request, then, failed)

    def fetch(
        self,
        to: tuple[int, NodeAddress],
        epoch: int,
        log_end: LogEnd,
        high_watermark: int,
        then: Then,
        failed: Failed,
    ) -> None:
        partition = messages.FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=log_end.offset,
            last_fetched_epoch=log_end.epoch,
            replica_directory_id=self._me.key.directory_id,
            high_watermark=high_watermark,
        )
        request = messages.FetchRequest(
            cluster_id=self.cluster_id,
            replica_state=messages.FetchRequest.ReplicaState(replica_id=self._me.key.id),
            max_wait_ms=_MAX_WAIT_MS,
            max_bytes=self.config.fetch_max_bytes,
            topics=[messages.FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        )
        self._ask(_FETCH, *to, request, then, failed)

    def fetch_snapshot(
        self,
        to: tuple[int, NodeAddress],
        epoch: int,
        snapshot: tuple[int, int],
        position: int,
        then: Then,
        failed: Failed,
    ) -> None:
        end_offset, snapshot_epoch = snapshot
        partition = messages.FetchSnapshotRequest.PartitionSnapshot(
            partition=0,
            current_leader_epoch=epoch,
            snapshot_id=messages.FetchSnapshotRequest.SnapshotId(end_offset=end_offset, epoch=snapshot_epoch),
            position=position,
            replica_directory_id=self._me.key.directory_id,
        )
        request = messages.FetchSnapshotRequest(
            cluster_id=self.cluster_id,
            replica_id=self._me.key.id,
            max_bytes=self.config.fetch_snapshot_max_bytes,
            topics=[messages.FetchSnapshotRequest.TopicSnapshot(name=PARTITION.topic, partitions=[partition])],
        )
        self._ask(_FETCH, *to, request, then, failed)

    def ask_leader(self, leader_id: int, voters: VoterSet, request: Message, then: Then, failed: Failed) -> bool:
        """False if nobody knows where the leader listens."""
        address = self.address_of(leader_id, voters)
        if address is None:
            return False
        self._ask(_RAFT, leader_id, address, request, then, failed)
        return True

    def ask_for_versions(self, voter: Voter, then: Then, failed: Failed) -> None:
        """What a controller that is to be a voter supports."""
        address = self._address_in(voter)
        assert address is not None, "a voter without an address"
        request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        self._ask(_RAFT, voter.key.id, address, request, then, failed)

    def _own_endpoints(self, make: Callable[..., Any]) -> list[Any]:
        return [make(name=end.listener, host=end.host, port=end.port) for end in self._me.endpoints]

    def _send(self, voter: Voter, request: Message, then: Then, failed: Failed) -> None:
        address = self._address_of_voter(voter)
        if address is not None:
            self._ask(_RAFT, voter.key.id, address, request, then, failed)

    def _ask(
        self, purpose: str, node_id: int, address: NodeAddress, request: Message, then: Then, failed: Failed
    ) -> None:
        def heard(response: Any) -> None:
            if self.refusals.note(node_id, address, response):
                self.on_foreign()
            then(response)

        self._connections.ask(
            ConnectionName(node_id, purpose),
            address,
            request,
            newest_version(request),
            then=heard,
            failed=failed,
            timeout_ms=self.config.request_timeout_ms,
        )


def _nobody_listens() -> None:
    """A network without a log."""
