"""What each kind of fault does. A function begins it, and returns what ends it.

Those of processes, machines, clocks and whole directories are here; `disk_errors`, `metadata_damage` and
`network_cuts` have the others.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults import disk_errors, metadata_damage, network_cuts, quorum_schedules, replica_schedules
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.faults.schedule import scheduled

if TYPE_CHECKING:
    from ottla.testing.sim.faults.nemesis import Nemesis

End = Callable[[], None]
Begin = Callable[["Nemesis", Fault, Machine], End | None]

OTHER_SETTINGS: Final = (
    {"log.segment.bytes": "1048576"},
    {"log.flush.interval.ms": "500"},
    {"num.recovery.threads.per.data.dir": "1"},
    {"metadata.log.max.record.bytes.between.snapshots": "1000"},
)

_VOTES_LOOKED_AT_EVERY_MS: Final = 2
_LONGEST_AFTER_VOTE_MS: Final = 30
_LEADER_BACK_AFTER_MS: Final = 1_000

_OTHERS_FAIL_TIMES: Final = 4
"""How many times as often a directory fails as the one with the metadata."""
_PATIENT: Final = 0.6
"""How many operators stop a node in good order."""
_STOPS_WITHIN_MS: Final = 3_000
_OPERATOR_WAITS_MS: Final = 500


# Processes and machines


def kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    if nemesis.must_live(machine):
        return None
    machine.kill()
    return lambda: nemesis.start(machine)


def power_cut(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """Only where nothing that was promised can be lost by it. Else the process dies, and its disk keeps everything."""
    if nemesis.may_cut_power(machine):
        machine.cut_power()
        nemesis.on_memory_lost(machine)
    elif nemesis.must_live(machine):
        return None
    else:
        nemesis.note(f"node {machine.node_id} is killed, and keeps its power")
        machine.kill()
    return lambda: nemesis.start(machine)


def leader_kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """Of the node that leads the quorum now, whichever it is; of the given one if none does."""
    leader = next((one for one in nemesis.machines if one.metadata and one.metadata.raft.is_leader), machine)
    if nemesis.must_live(leader):
        return None
    leader.kill()
    return lambda: nemesis.start(leader)


def voter_kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    """For a while the node is killed some milliseconds after each vote that it gives, and starts again at once.

    The leader is killed now, so that there is something to vote on.
    """
    chance = nemesis.chance_of(fault)
    back = leader_kill(nemesis, fault, machine)
    if back is not None:
        nemesis.later(_LEADER_BACK_AFTER_MS, back)
    is_over: list[bool] = []
    seen: set[int] = set()

    def kill() -> None:
        if not is_over and machine.life is not None and not nemesis.must_live(machine):
            machine.kill("killed after a vote")
            nemesis.start(machine)

    def look() -> None:
        if is_over:
            return
        raft = machine.metadata.raft if machine.metadata is not None else None
        if raft is not None and raft.voted_for not in (None, raft.me.key) and raft.epoch not in seen:
            seen.add(raft.epoch)
            nemesis.later(chance.randrange(_LONGEST_AFTER_VOTE_MS), kill)
        nemesis.later(_VOTES_LOOKED_AT_EVERY_MS, look)

    look()
    return lambda: is_over.append(True)


def restart(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """In good order, with another setting. A node that is not done in time is killed, as an impatient operator does."""
    if nemesis.must_live(machine):
        return None
    machine.stop()

    def end() -> None:
        machine.kill()
        nemesis.start(machine, OTHER_SETTINGS[fault.amount % len(OTHER_SETTINGS)])

    return end


def pause(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    life = machine.life
    if life is None:
        return None
    life.pause()
    return life.resume


# Clocks


def clock_jump(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.clock.jump(fault.amount)
    return lambda: machine.clock.jump(-fault.amount)


def clock_set(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    """As `clock_jump`, and nobody sets it right."""
    machine.clock.jump(fault.amount)


def clock_stall(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.clock.stall()
    return machine.clock.resume


# Directories


def lost_directory(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """One log directory answers with errors, over restarts, until an operator stops the node and does something.

    What that is, the seed decides: the directory is brought back with what its disk has, an empty one is put in its
    place, or it is taken out of `log.dirs`. The one with the metadata, without which the node cannot continue, is
    always brought back: a voter that has forgotten its vote is for another procedure (docs/cluster.md).
    """
    chance = nemesis.chance_of(fault)
    metadata_path, *others = machine.log_dirs
    path = chance.choice([metadata_path, *others * _OTHERS_FAIL_TIMES])
    mends = [machine.mend_directory]
    if path != metadata_path:
        mends.append(machine.replace_directory)
        if len(others) > 1:
            mends.append(machine.remove_directory)
    mend, is_patient = chance.choice(mends), chance.random() < _PATIENT
    is_for_good = mend != machine.mend_directory
    if path in machine.failed_directories or not nemesis.may_lose_directory(machine, path, is_for_good=is_for_good):
        return None
    nemesis.note(f"{path} of node {machine.node_id} fails")
    nemesis.on_directory_lost(machine, path, is_for_good=is_for_good)
    machine.fail_directory(path)

    def end() -> None:
        if path not in machine.failed_directories:
            return
        if not nemesis.promises.may_end(machine):
            nemesis.later(_OPERATOR_WAITS_MS, end)
            return
        if is_patient and machine.is_serving:
            machine.stop()
        nemesis.later(_STOPS_WITHIN_MS if is_patient else 0, swap)

    def swap() -> None:
        if path not in machine.failed_directories:
            return
        if machine.is_serving and not nemesis.promises.may_end(machine):
            nemesis.later(_OPERATOR_WAITS_MS, swap)
            return
        machine.kill()
        nemesis.note(f"{mend.__name__.replace('_', ' ')} {path} of node {machine.node_id}")
        mend(path)
        nemesis.start(machine)

    return end


# Clients


def client_kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    if nemesis.actors:
        nemesis.actors[abs(fault.amount) % len(nemesis.actors)].kill()


def client_pause(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """A program stands still, and takes itself for a member or an owner that it may not be any more when it resumes."""
    if not nemesis.actors:
        return None
    process = nemesis.actors[abs(fault.amount) % len(nemesis.actors)].client.process
    process.stop()
    return process.resume


def client_clock(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    if nemesis.actors:
        nemesis.actors[abs(fault.amount) % len(nemesis.actors)].client.clock.jump(fault.amount)


class FaultKind(NamedTuple):
    begin: Begin
    longest_ms: int
    shortest_ms: int = 1


KINDS: Final[dict[str, FaultKind]] = {
    "kill": FaultKind(kill, 8_000),
    "power cut": FaultKind(power_cut, 8_000),
    "leader kill": FaultKind(leader_kill, 1_500),
    "voter kill": FaultKind(voter_kill, 8_000),
    "restart": FaultKind(restart, 8_000),
    "pause": FaultKind(pause, 15_000),
    "clock jump": FaultKind(clock_jump, 30_000),
    "clock stall": FaultKind(clock_stall, 10_000),
    "clock set": FaultKind(clock_set, 1),
    "slow disk": FaultKind(disk_errors.slow_disk, 10_000),
    "full disk": FaultKind(disk_errors.full_disk, 5_000),
    "failed sync": FaultKind(disk_errors.failed_sync, 5_000),
    "failed write": FaultKind(disk_errors.failed_write, 5_000),
    "no descriptors": FaultKind(disk_errors.no_descriptors, 5_000),
    "no memory": FaultKind(disk_errors.no_memory, 5_000),
    "no space": FaultKind(disk_errors.no_space, 5_000),
    "disk errors": FaultKind(disk_errors.disk_errors, 5_000),
    "lost files": FaultKind(disk_errors.lost_files, 5_000),
    "damaged metadata": FaultKind(metadata_damage.damaged_metadata, 5_000),
    "rotten metadata": FaultKind(metadata_damage.rotten_metadata, 6_000),
    "bit rot": FaultKind(disk_errors.bit_rot, 6_000),
    "lost directory": FaultKind(lost_directory, 15_000),
    "partition": FaultKind(network_cuts.partition, 20_000),
    "stale leader": FaultKind(network_cuts.stale_leader, 15_000),
    "pair": FaultKind(network_cuts.pair, 20_000),
    "one way": FaultKind(network_cuts.one_way, 20_000),
    "bridge": FaultKind(network_cuts.bridge, 20_000),
    "ring": FaultKind(network_cuts.ring, 20_000),
    "swizzle": FaultKind(network_cuts.swizzle, 8_000),
    "slow links": FaultKind(network_cuts.slow_links, 10_000),
    "late replies": FaultKind(network_cuts.late_replies, 10_000),
    "lost replies": FaultKind(network_cuts.lost_replies, 10_000),
    "repeated replies": FaultKind(network_cuts.repeated_replies, 10_000),
    "resets": FaultKind(network_cuts.resets, 1),
    "client kill": FaultKind(client_kill, 1),
    "client pause": FaultKind(client_pause, 15_000),
    "client clock": FaultKind(client_clock, 1),
    "figure 8": FaultKind(scheduled(quorum_schedules.figure_8), 40_000, 40_000),
    "lost epoch": FaultKind(scheduled(quorum_schedules.lost_epoch), 20_000, 20_000),
    "split vote": FaultKind(scheduled(quorum_schedules.split_vote), 15_000, 15_000),
    "voters at once": FaultKind(scheduled(quorum_schedules.voters_at_once), 15_000, 15_000),
    "stale follower": FaultKind(scheduled(replica_schedules.stale_follower), 20_000, 20_000),
    "late delta": FaultKind(scheduled(replica_schedules.late_delta), 20_000, 20_000),
    "late request": FaultKind(scheduled(replica_schedules.late_request), 25_000, 25_000),
    "overtaken assignment": FaultKind(scheduled(replica_schedules.overtaken_assignment), 15_000, 15_000),
}
