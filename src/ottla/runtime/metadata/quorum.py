"""Which quorum a directory belongs to, and what its leader writes when an epoch begins."""

from ottla.base.errors import StorageError
from ottla.machines.raft.events import BeginEpoch
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Voter, VoterSet
from ottla.records.kraft_control import KraftMessage
from ottla.runtime.metadata.store import MetadataStore
from ottla.wire.messages import KRaftVersionRecord, LeaderChangeMessage


def raft_of(store: MetadataStore, me: Voter, static_voters: VoterSet | None) -> Raft:
    """The replica that this directory holds. Raises `StorageError` unless it is the only voter of its quorum."""
    voters = store.voters if store.kraft_version >= DYNAMIC_VOTERS else static_voters
    if voters is None:
        raise StorageError(
            f"{store.directory}: there are no voters: neither does controller.quorum.voters name any, nor was the "
            "directory formatted with --standalone or --initial-controllers"
        )
    if voters.ids != [me.key.id] or not voters.has(me.key):
        raise StorageError(
            f"{store.directory}: the quorum has the voters {voters.ids}; this version runs a quorum of one, "
            f"which must be this node, {me.key.id}, with this directory"
        )
    return Raft(
        me,
        voters,
        store.read_quorum_state(),
        store.log_end,
        kraft_version=store.kraft_version,
        voters_in_log=store.voters_in_log,
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
