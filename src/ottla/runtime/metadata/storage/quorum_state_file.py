"""The file `quorum-state`: one line of JSON, exactly as Apache Kafka writes it.

Version 0 goes with static voters and names them; version 1 (KIP-853) has the directory that was voted for, and the
voters are in the log instead.
"""

import json
from collections.abc import Sequence

from ottla.base.ids import ZERO_UUID, parse_uuid, uuid_text
from ottla.base.ports import Disk
from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.machines.raft.events import NOBODY, QuorumState
from ottla.machines.raft.voters import DYNAMIC_VOTERS

NAME = "quorum-state"


def format_quorum_state(state: QuorumState, kraft_version: int, voter_ids: Sequence[int]) -> bytes:
    if kraft_version < DYNAMIC_VOTERS:
        content = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        content = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": uuid_text(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def parse_quorum_state(content: bytes, path: str) -> QuorumState:
    try:
        fields = json.loads(content.decode())
        if fields["data_version"] not in (0, 1):
            raise ValueError(f"data_version {fields['data_version']}")
        voted_directory_id = fields.get("votedDirectoryId")
        return QuorumState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields.get("leaderId", NOBODY)),
            voted_id=int(fields.get("votedId", NOBODY)),
            voted_directory_id=parse_uuid(voted_directory_id) if voted_directory_id else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CorruptFile(f"{path}: not a quorum state that is known: {problem}") from problem


def read_quorum_state(disk: Disk, directory: str) -> QuorumState:
    """What is remembered; a replica that has never heard of an election remembers epoch 0."""
    path = f"{directory}/{NAME}"
    return parse_quorum_state(read_file(disk, path), path) if disk.exists(path) else QuorumState()


def write_quorum_state(
    disk: Disk, directory: str, state: QuorumState, kraft_version: int, voter_ids: Sequence[int]
) -> None:
    """Durable when it returns. A crash half-way leaves the old state or the new one."""
    replace_file(disk, f"{directory}/{NAME}", format_quorum_state(state, kraft_version, voter_ids))
