"""The voters of a quorum.

With kraft.version 0 they are what `controller.quorum.voters` says on every node, and are known by id alone. From
kraft.version 1 on (KIP-853) they are data: a control record in the log names each with the directory that holds its
log, so that a node that comes back with an empty disk is not taken for the voter it was.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.messages import VotersRecord

STATIC_VOTERS = 0
DYNAMIC_VOTERS = 1
"""The two values of kraft.version."""

SUPPORTED_KRAFT_VERSIONS = (STATIC_VOTERS, DYNAMIC_VOTERS)


class ReplicaKey(NamedTuple):
    """A replica of the metadata log; the zero directory stands for one that is not known."""

    id: int
    directory_id: Uuid = ZERO_UUID

    def stands_for(self, other: "ReplicaKey") -> bool:
        """Whether the other may be meant: it has this id, and this directory if one is known."""
        return self.id == other.id and self.directory_id in (ZERO_UUID, other.directory_id)


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter as it describes itself. Its listeners have no order: Apache Kafka's leaders write them in that of a hash
    table.
    """

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: tuple[int, int] = SUPPORTED_KRAFT_VERSIONS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Voter) and self._unordered() == other._unordered()

    def __ne__(self, other: object) -> bool:
        return not self == other  # A tuple's own would look at the order.

    def __hash__(self) -> int:
        return hash(self._unordered())

    def _unordered(self) -> tuple[ReplicaKey, frozenset[Endpoint], tuple[int, int]]:
        return self.key, frozenset(self.endpoints), self.kraft_versions

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens under this name. Kafka writes names in upper case, whatever the settings have."""
        for endpoint in self.endpoints:
            if endpoint.listener.upper() == listener.upper():
                return endpoint
        return None


class VoterSet:
    """The voters at one moment. Immutable; `updated` gives another."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._voters = {voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)}

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __len__(self) -> int:
        return len(self._voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self)!r})"

    @property
    def ids(self) -> list[int]:
        return list(self._voters)

    @property
    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        return self._voters.get(node_id)

    def has(self, key: ReplicaKey) -> bool:
        """Whether this replica votes. A voter without a directory is known by its id, whatever directory it has."""
        voter = self._voters.get(key.id)
        return voter is not None and voter.key.stands_for(key)

    def others(self, key: ReplicaKey) -> list[Voter]:
        return [voter for voter in self if voter.key.id != key.id]

    def updated(self, voter: Voter) -> "VoterSet":
        """With another description of a voter that is among these."""
        assert self.has(voter.key), f"{voter.key} is not a voter"
        return VoterSet({**self._voters, voter.key.id: voter}.values())

    def with_voter(self, voter: Voter) -> "VoterSet":
        """With one more."""
        assert self.get(voter.key.id) is None, f"{voter.key.id} is a voter"
        return VoterSet([*self, voter])

    def without(self, key: ReplicaKey) -> "VoterSet":
        """With one less."""
        assert self.has(key), f"{key} is not a voter"
        return VoterSet(voter for voter in self if voter.key.id != key.id)

    def to_record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=[_to_wire(voter) for voter in self])

    @classmethod
    def of_record(cls, record: VotersRecord) -> "VoterSet":
        return cls(_of_wire(voter) for voter in record.voters)


def _to_wire(voter: Voter) -> VotersRecord.Voter:
    lowest, highest = voter.kraft_versions
    return VotersRecord.Voter(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=[
            VotersRecord.Endpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in voter.endpoints
        ],
        k_raft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=lowest, max_supported_version=highest
        ),
    )


def _of_wire(voter: VotersRecord.Voter) -> Voter:
    feature = voter.k_raft_version_feature
    return Voter(
        ReplicaKey(voter.voter_id, voter.voter_directory_id),
        tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
        (feature.min_supported_version, feature.max_supported_version),
    )
