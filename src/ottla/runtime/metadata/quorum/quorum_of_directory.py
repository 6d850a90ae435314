"""Which quorum a directory belongs to, who leads it, and what its leader writes when an epoch begins."""

from ottla.base.errors import StorageError
from ottla.machines.raft.events import BeginEpoch
from ottla.machines.raft.machine import Raft, Role, Timeouts
from ottla.machines.raft.voter_history import VoterHistory
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Voter, VoterSet
from ottla.records.control import KraftMessage
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.storage.store import MetadataStore
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.peers.remote_controller import ActiveController
from ottla.wire.messages import KRaftVersionRecord, LeaderChangeMessage


def raft_of(
    store: MetadataStore,
    me: Voter,
    static_voters: VoterSet | None,
    timeouts: Timeouts | None,
    network: QuorumNetwork | None,
) -> Raft:
    """The replica that this directory holds. Raises `StorageError` where it can be neither a voter nor follow one."""
    kraft_version, voters = store.snapshot_voters
    if kraft_version < DYNAMIC_VOTERS:
        voters = static_voters
    history = VoterHistory(kraft_version, voters or VoterSet([]), store.snapshot_offset - 1)
    for change in store.voter_changes:
        history.note(change.offset, kraft_version=change.kraft_version, voters=change.voters)
    is_alone = network is None or not network.known(history.voters)
    if not len(history.voters) and is_alone:
        raise StorageError(
            f"{store.directory}: there are no voters: neither does controller.quorum.voters name any, nor was the "
            "directory formatted with --standalone or --initial-controllers"
        )
    if not history.voters.has(me.key) and is_alone:
        raise StorageError(
            f"{store.directory}: the quorum has the voters {history.voters.ids}, "
            f"and none of them is this node, {me.key.id}, with this directory"
        )
    return Raft(
        me,
        history.voters,
        store.read_quorum_state(),
        store.log_end,
        timeouts=timeouts,
        history=history,
    )


def active_controller(raft: Raft, network: QuorumNetwork | None) -> ActiveController | None:
    """The node whose controller decides, and where it is asked; None while nobody is known to lead."""
    if raft.is_leader:
        return ActiveController(raft.me.key.id, NodeAddress("", 0))
    if raft.role is not Role.FOLLOWER or network is None:
        return None
    address = network.address_of(raft.leader_id, raft.voters)
    return ActiveController(raft.leader_id, address) if address is not None else None


def epoch_records(raft: Raft, begin: BeginEpoch) -> list[KraftMessage]:
    """Kafka 4.3 writes the leader change at version 0, without directories, whatever kraft.version is."""
    records: list[KraftMessage] = [
        LeaderChangeMessage(
            leader_id=raft.me.key.id,
            voters=[LeaderChangeMessage.Voter(voter_id=voter_id) for voter_id in begin.voters.ids],
            granting_voters=[LeaderChangeMessage.Voter(voter_id=voter_id) for voter_id in begin.granting_voter_ids],
        )
    ]
    if begin.write_voters:
        records += [KRaftVersionRecord(k_raft_version=raft.kraft_version), begin.voters.to_record()]
    return records
