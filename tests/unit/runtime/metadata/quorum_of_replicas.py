"""Replicas of a metadata log on networks in memory: elections and replication as they are, time when it is moved."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ottla.base.ids import Uuid
from ottla.machines.decision import Decision
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.raft.machine import Timeouts
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.quorum.quorum_network import QuorumConfig, QuorumNetwork
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import MetadataStore, StoreConfig
from ottla.runtime.peers.node_connections import NodeConnections
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.server import Server
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import Agenda, StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.testing.step_world import step_world
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from tests.unit.runtime.metadata.metadata_logs import BOOTSTRAP, LOG_DIR, make_controller, topic_records

CLUSTER_ID = "the-cluster"
RAISED = 1
"""kraft.version of voters that are data."""
SERVED = {
    ApiKey.API_VERSIONS: 4,
    ApiKey.VOTE: 2,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.FETCH: 18,
    ApiKey.FETCH_SNAPSHOT: 1,
    ApiKey.ADD_RAFT_VOTER: 1,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.UPDATE_RAFT_VOTER: 0,
}


def voter(node_id: int, before: Sequence[str] = ()) -> Voter:
    """`before` are listeners that it names before the one at which controllers are asked. Nobody reaches it there."""
    others = [Endpoint(name, "host0", 1) for name in before]
    return Voter(ReplicaKey(node_id), (*others, Endpoint("CONTROLLER", f"host{node_id}", 9093)))


def directory_of(number: int) -> Uuid:
    return Uuid(bytes([number]) * 16)


class Replica:
    """One life of a replica. `disk` is what survives it."""

    def __init__(
        self,
        scene: "Quorum",
        node_id: int,
        disk: MemoryDisk,
        directory: Uuid | None = None,
        cluster_id: str = CLUSTER_ID,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.disk = disk
        self.events: list[object] = []
        self.problems: list[MetadataLogFailed] = []
        self.network = MemoryNetwork(host=f"host{node_id}", find=lambda host, _: scene.find(node_id, host))
        self.timers = StepTimers(scene.clock, scene.agenda)
        workers = self.workers = StepWorkers()
        world = step_world(disk, scene.clock, timers=self.timers, workers=workers, network=self.network, seed=node_id)
        endpoints = voter(node_id, scene.other_listeners).endpoints
        me = Voter(ReplicaKey(node_id, directory or directory_of(node_id)), endpoints)
        self.newest_vote = scene.newest_votes.get(node_id, SERVED[ApiKey.VOTE])
        self.connections = NodeConnections(world, str(node_id))
        self.log: MetadataLog[Controller] = MetadataLog(
            MetadataStore(disk, LOG_DIR, scene.clock, scene.store_config),
            me,
            scene.voters,
            bootstrap=BOOTSTRAP,
            make_controller=make_controller,
            workers=workers,
            clock=scene.clock,
            failed=self.problems.append,
            snapshots=scene.snapshots,
            timers=self.timers,
            entropy=Random(node_id),
            network=QuorumNetwork(self.connections, me, cluster_id, config=scene.network_config),
            timeouts=scene.timeouts,
            linger_ms=scene.linger_ms,
        )
        self.server = Server(self.network, self.timers, workers, self._handle, self._unsupported)
        self.server.listen(f"host{node_id}", 9093, "CONTROLLER")
        self.server.start_accepting()
        self.log.start(lambda: self.events.append("ready"))

    def _handle(self, context: RequestContext, message: Any, respond: Respond) -> None:
        assert self.log.answers is not None
        assert self.log.leader is not None
        version = context.api_version
        match context.api_key:
            case ApiKey.API_VERSIONS:
                served = {**SERVED, ApiKey.VOTE: self.newest_vote}
                keys = [
                    ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest)
                    for key, newest in served.items()
                ]
                feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                respond(ApiVersionsResponse(api_keys=keys, supported_features=[feature]))
            case ApiKey.VOTE:
                self.log.answers.vote(message, version, respond)
            case ApiKey.BEGIN_QUORUM_EPOCH:
                self.log.answers.begin_epoch(message, version, respond)
            case ApiKey.END_QUORUM_EPOCH:
                self.log.answers.end_epoch(message, version, respond)
            case ApiKey.FETCH:
                self.log.leader.fetch(message, version, respond)
            case ApiKey.FETCH_SNAPSHOT:
                self.log.leader.fetch_snapshot(message, version, respond)
            case _:
                self._change_voters(message, respond)

    def _change_voters(self, message: Any, respond: Respond) -> None:
        changes = self.log.voter_changes
        assert changes is not None
        match message:
            case AddRaftVoterRequest():
                changes.add(message, lambda error, _words: respond(AddRaftVoterResponse(error_code=error)))
            case RemoveRaftVoterRequest():
                changes.remove(message, lambda error, _words: respond(RemoveRaftVoterResponse(error_code=error)))
            case UpdateRaftVoterRequest():
                changes.update(message, lambda error, _words: respond(UpdateRaftVoterResponse(error_code=error)))

    def _unsupported(self, context: RequestContext, _respond: Respond) -> None:
        raise AssertionError(f"a request that is not known: {context}")

    @property
    def topics(self) -> list[str]:
        return sorted(self.log.image.topics.by_name)

    def create(self, *names: str) -> None:
        records = [record for name in names for record in topic_records(name)]
        self.log.submit(lambda _c, _t: Decision(names[0], records), self.events.append, self.events.append)

    def end(self) -> None:
        self.timers.close()
        self.connections.close()
        self.server.close()
        self.network.close()


class Quorum:
    """So many voters, and observers with higher ids. `cut` are pairs of nodes that do not hear each other."""

    def __init__(
        self,
        voters: int = 3,
        observers: int = 0,
        *,
        store_config: StoreConfig | None = None,
        snapshots: SnapshotConfig | None = None,
        network_config: QuorumConfig | None = None,
        timeouts: Timeouts | None = None,
        linger_ms: int = 0,
        other_listeners: Sequence[str] = (),
        newest_votes: Mapping[int, int] | None = None,
    ) -> None:
        self.other_listeners = other_listeners
        self.newest_votes = newest_votes or {}
        """By node: the newest version of Vote that it serves, if it is an older one."""
        self.network_config = network_config
        self.timeouts = timeouts
        self.linger_ms = linger_ms
        self.clock = FixedClock()
        self.agenda = Agenda(self.clock)
        self.voters = VoterSet(voter(node_id, other_listeners) for node_id in range(1, voters + 1))
        self.store_config = store_config
        self.snapshots = snapshots
        self.cut: set[frozenset[int]] = set()
        self.replicas: dict[int, Replica] = {}
        for node_id in range(1, voters + observers + 1):
            self.start(node_id)

    def start(
        self,
        node_id: int,
        disk: MemoryDisk | None = None,
        directory: Uuid | None = None,
        cluster_id: str = CLUSTER_ID,
    ) -> Replica:
        self.replicas[node_id] = Replica(self, node_id, disk or MemoryDisk(), directory, cluster_id)
        return self.replicas[node_id]

    def kill(self, node_id: int) -> MemoryDisk:
        replica = self.replicas.pop(node_id)
        replica.end()
        return replica.disk.survivor_of_kill()

    def find(self, asking: int, host: str) -> MemoryNetwork | None:
        node_id = int(host.removeprefix("host"))
        if node_id not in self.replicas or frozenset((asking, node_id)) in self.cut:
            return None
        return self.replicas[node_id].network

    def isolate(self, node_id: int) -> None:
        """Cuts a node off from all others; its connections break."""
        others = [other for other in self.replicas if other != node_id]
        self.cut |= {frozenset((node_id, other)) for other in others}
        for replica in self.replicas.values():
            for connection in list(replica.server.connections):
                if replica.node_id == node_id or connection.session.client.client_host == f"host{node_id}":
                    connection.close()

    def run(self, by_ms: int) -> None:
        end_us = self.clock.elapsed_us() + by_ms * 1000
        while True:
            while sum(replica.network.turn() for replica in list(self.replicas.values())):
                pass
            if self.agenda.next_us() > end_us:
                break
            self.agenda.fire_next()
        self.clock.advance_to(end_us)
        for replica in self.replicas.values():
            assert replica.cluster_id != CLUSTER_ID or not replica.problems, replica.problems

    @property
    def leader(self) -> Replica:
        (leader,) = [replica for replica in self.replicas.values() if replica.log.is_active]
        return leader

    def followers(self) -> list[Replica]:
        return [replica for replica in self.replicas.values() if replica is not self.leader]


def keep_place(replica: Replica, *, joins: bool) -> None:
    assert replica.log.voter_changes is not None
    replica.log.voter_changes.keep_place(replica.timers, joins=joins)


def settled(voters: int = 3, observers: int = 0) -> Quorum:
    """An elected quorum whose voters have told the leader who they are."""
    quorum = Quorum(voters, observers)
    for replica in quorum.replicas.values():
        keep_place(replica, joins=False)
    quorum.run(8000)
    return quorum


def raise_version(quorum: Quorum) -> list[ErrorCode]:
    told: list[ErrorCode] = []
    assert quorum.leader.log.voter_changes is not None
    quorum.leader.log.voter_changes.upgrade(RAISED, lambda error, _message: told.append(error))
    quorum.run(1000)
    return told
