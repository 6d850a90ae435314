"""The faults of a run leave the last replica alone that has what was promised, and nothing else."""

import pytest

from ottla.log.file_names import CLUSTER_METADATA_TOPIC
from ottla.testing.sim import ClusterSettings, History, NewTopic, SimulatedCluster
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.faults.fault_kinds import KINDS
from ottla.testing.sim.faults.metadata_damage import QuorumPromises
from ottla.testing.sim.faults.nemesis import Nemesis
from ottla.testing.sim.faults.promises import Promises

SOON_MS = 60_000


class Scene:
    def __init__(self, nodes: int = 3) -> None:
        self.cluster = SimulatedCluster(3, ClusterSettings(nodes, more={"log.dirs": "/data,/data-2"}))
        self.cluster.start()
        self.cluster.create_topics(NewTopic("orders", 2))
        self.wait_until_whole()
        self.cluster.simulation.run_for(1_000)  # The logs are made.
        self.promises = Promises(self.cluster, History())
        self.machines = list(self.cluster.machines.values())

    def wait_until_whole(self) -> None:
        self.cluster.simulation.run_until(lambda: is_whole(self.cluster), SOON_MS)

    def may_end(self) -> list[bool]:
        return [self.promises.may_end(machine) for machine in self.machines]

    def may_lose(self) -> list[bool]:
        return [self.promises.may_lose(machine) for machine in self.machines]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_where_nobody_has_lost_records_all_may_end_and_the_last_may_not_lose_any(scene: Scene) -> None:
    assert scene.may_lose() == [True, True, True]
    scene.machines[0].kill()
    assert scene.may_lose() == [True, True, True]
    scene.machines[1].kill()
    assert scene.may_end() == [True, True, True]
    assert scene.may_lose() == [True, True, False]
    scene.machines[2].kill()
    assert scene.may_lose() == [False, False, False]


def test_while_one_has_lost_records_another_may_end_and_the_last_may_not(scene: Scene) -> None:
    first, second, third = scene.machines
    first.cut_power()
    scene.promises.on_lost(first)
    assert scene.may_end() == [True, True, True]
    second.kill()
    assert scene.may_end() == [True, True, False]
    second.start()
    first.start()
    scene.wait_until_whole()
    assert scene.may_end() == [True, True, True]
    first.kill()
    second.kill()
    assert scene.promises.may_end(third), "the first has everything again"


def test_a_node_that_is_back_and_not_in_sync_keeps_nothing(scene: Scene) -> None:
    first, second, third = scene.machines
    first.cut_power()
    scene.promises.on_lost(first)
    second.kill()
    second.start()
    assert not scene.promises.may_end(third)
    scene.cluster.simulation.run_until(lambda: scene.promises.may_end(third), SOON_MS)
    assert not is_whole(scene.cluster), "the second is in sync, and the first is still away"


def test_a_node_whose_disk_may_fail_keeps_nothing(scene: Scene) -> None:
    scene.machines[0].spoil_disk()
    scene.machines[1].fail_directory("/data-2")
    assert scene.may_lose() == [True, True, False]


def test_a_loss_is_of_the_replicas_that_were_in_what_is_lost(scene: Scene) -> None:
    """Else the node with the last eligible leader waits for ever, where its directory fails and must be mended."""
    first, second, third = scene.machines
    scene.promises.on_lost(first, lambda name: name.partition == 0)
    first.kill()
    second.kill()
    of_0, of_1 = (scene.promises.may_end(third, lambda name, of=index: name.partition == of) for index in (0, 1))
    assert (of_0, of_1) == (False, True)


@pytest.mark.parametrize("is_down", [False, True])
def test_it_is_known_that_a_node_starts_without_some_files_though_it_was_down_before(
    scene: Scene, is_down: bool
) -> None:
    """Its logs need not know the epochs of their batches then."""
    machine = scene.machines[0]
    if is_down:
        machine.kill()
    fault = Fault(0, 0, "lost files", machine.node_id, 1, 0)
    before = machine.disk.files()
    assert KINDS[fault.kind].begin(Nemesis(scene.cluster, History(), []), fault, machine) is not None
    assert machine.disk.files() != before
    assert machine.has_lost_files


def test_a_controller_may_forget_its_vote_where_all_have_a_leader_in_the_epoch_of_their_last_record(
    scene: Scene,
) -> None:
    """Then nobody is asked for a vote in that epoch again."""
    quorum = QuorumPromises(scene.cluster)
    assert quorum.may_forget_vote()
    leader = next(one for one in scene.machines if one.metadata is not None and one.metadata.raft.is_leader)
    leader.kill()
    assert not quorum.may_forget_vote(), "the others are about to vote"
    scene.cluster.simulation.run_until(lambda: _has_leader(scene, besides=leader), SOON_MS)
    assert not quorum.may_forget_vote(), "nobody knows what the one that is away will ask for"
    leader.start()
    scene.cluster.simulation.run_until(quorum.may_forget_vote, SOON_MS)


def _has_leader(scene: Scene, besides: Machine) -> bool:
    return any(one.metadata is not None and one.metadata.raft.is_leader for one in scene.machines if one is not besides)


def test_metadata_that_rot_while_a_controller_runs_read_well_again_in_the_end(scene: Scene) -> None:
    machine = scene.machines[0]
    before = machine.disk.files()
    fault = Fault(0, 0, "rotten metadata", machine.node_id, 1, 0)
    end = KINDS[fault.kind].begin(Nemesis(scene.cluster, History(), []), fault, machine)
    assert end is not None
    (rotten,) = (path for path, data in machine.disk.files().items() if before[path] != data)
    assert CLUSTER_METADATA_TOPIC in rotten
    assert machine.is_rotten
    end()
    assert machine.disk.files() == before
