"""Another controller with a node's own id is found where it answers, and nothing changes at its end."""

from ottla.machines.raft.voters import ReplicaKey
from ottla.runtime.metadata.quorum.same_id import SameId
from ottla.runtime.peers.node_connections import NodeAddress
from tests.unit.runtime.metadata.quorum_of_replicas import CLUSTER_ID, Quorum, Replica, directory_of

NUMBER = 1 << 60
TIMEOUT_MS = 2000


def looker(asking: Replica, node_id: int, cluster_id: str = CLUSTER_ID) -> SameId:
    """What a second node with this id asks, over the connections of a replica that it may use."""
    return SameId(asking.connections, ReplicaKey(node_id, directory_of(9)), cluster_id, TIMEOUT_MS)


def found(quorum: Quorum, same_id: SameId, host: str) -> bool:
    told: list[bool] = []
    same_id.look_at(NodeAddress(host, 9093), NUMBER, told.append)
    quorum.run(TIMEOUT_MS + 1000)
    (is_there,) = told
    return is_there


def elected() -> Quorum:
    quorum = Quorum(3)
    quorum.run(8000)
    return quorum


def test_a_controller_with_the_id_is_found_whatever_epoch_it_is_in() -> None:
    quorum = elected()
    asking, other = quorum.followers()
    assert quorum.leader.log.raft.epoch > 0
    assert found(quorum, looker(asking, other.node_id), f"host{other.node_id}")
    assert found(quorum, looker(asking, quorum.leader.node_id), f"host{quorum.leader.node_id}")


def test_a_controller_with_another_id_or_of_another_cluster_is_not_meant() -> None:
    quorum = elected()
    asking, other = quorum.followers()
    assert not found(quorum, looker(asking, 9), f"host{other.node_id}")
    assert not found(quorum, looker(asking, other.node_id, "another-cluster"), f"host{other.node_id}")


def test_a_controller_that_is_gone_is_not_there() -> None:
    quorum = elected()
    asking, other = quorum.followers()
    same_id = looker(asking, other.node_id)
    quorum.kill(other.node_id)
    assert not found(quorum, same_id, f"host{other.node_id}")


def test_a_node_knows_its_own_question() -> None:
    """Its address may be known by a name that leads back to it."""
    quorum = elected()
    one = quorum.followers()[0]
    assert one.log.same_id is not None
    assert not found(quorum, one.log.same_id, f"host{one.node_id}")


def test_the_question_changes_nothing() -> None:
    quorum = elected()
    asking, other = quorum.followers()
    before = [(replica.log.raft.epoch, replica.log.raft.leader_id) for replica in quorum.replicas.values()]
    assert found(quorum, looker(asking, other.node_id), f"host{other.node_id}")
    assert [(replica.log.raft.epoch, replica.log.raft.leader_id) for replica in quorum.replicas.values()] == before
