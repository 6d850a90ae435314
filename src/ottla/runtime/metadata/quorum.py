"""Which quorum a directory belongs to, and what its leader writes when an epoch begins."""

from ottla.base.errors import StorageError
from ottla.machines.raft.events import BeginEpoch
from ottla.machines.raft.machine import Raft, Timeouts
from ottla.machines.raft.voter_history import VoterHistory
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Voter, VoterSet
from ottla.records.kraft_control import KraftMessage
from ottla.runtime.metadata.quorum_network import QuorumNetwork
from ottla.runtime.metadata.store import MetadataStore
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
        voters_in_log=store.voters_in_log,
        timeouts=timeouts,
        history=history,
    )


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
