"""Files of a controller's metadata that are lost or damaged: snapshots, leader epochs, quorum state, the log.

What a voter has confirmed, a majority rests on. So one controller at a time loses some of it, where each of the others
has all that it had on a sound disk, and the next only when the first has all of it again. Apache Kafka promises nothing
beyond that, either. A `quorum-state` that has other numbers is not drawn: a voter would have forgotten its vote, and
nobody could know. One that is gone is the same, and is drawn where that does no harm: all are in the epoch of their
last record and have a leader in it, so nobody stands in it any more.

The node starts with what is left, or says which file it cannot start with (`Machine.damage`): then an operator puts the
files back as they were. What rots while a node runs is nobody's loss: it reads well again when the fault is over.
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from ottla.log import file_names
from ottla.machines.raft.events import LogEnd
from ottla.runtime.metadata.storage.quorum_state_file import NAME as QUORUM_STATE
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.faults.fault import Fault

if TYPE_CHECKING:
    from ottla.testing.sim.faults.fault_kinds import End
    from ottla.testing.sim.faults.nemesis import Nemesis

_LOOKS_EVERY_MS: Final = 5
_ALL_SNAPSHOTS: Final = 0.3
"""How often all are damaged, and not the newest alone."""


class QuorumPromises:
    """Which controllers may lose metadata that they have confirmed."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._lost: dict[int, LogEnd] = {}
        """By node: where the log ended that it has lost some of."""

    def may_lose(self, machine: Machine) -> bool:
        """Whether every other controller has all that this one has, durably, and none of them is about to lose it."""
        if machine.metadata is None:
            return False
        end = machine.metadata.raft.log_end
        others = [
            one
            for one in self._cluster.machines.values()
            if one is not machine and one.node_id in self._cluster.settings.controllers()
        ]
        return bool(others) and all(self._has(one, end) and not self._still_lacks(one) for one in others)

    def may_forget_vote(self) -> bool:
        """Whether nobody will ever be asked for a vote again in the epoch that the controllers are in."""
        controllers = [self._cluster.machines[node_id] for node_id in self._cluster.settings.controllers()]
        rafts = [one.metadata.raft for one in controllers if one.metadata is not None]
        epochs = {epoch for raft in rafts for epoch in (raft.epoch, raft.log_end.epoch)}
        return len(rafts) == len(controllers) and len(epochs) == 1 and all(raft.leader_id >= 0 for raft in rafts)

    def on_lost(self, machine: Machine) -> None:
        assert machine.metadata is not None
        self._lost[machine.node_id] = machine.metadata.raft.log_end

    def _has(self, machine: Machine, end: LogEnd) -> bool:
        """Of equal last epochs, the longer log has all that is in the shorter."""
        metadata = machine.metadata
        if metadata is None or not machine.is_serving or machine.may_fail:
            return False
        return metadata.raft.log_end.epoch == end.epoch and metadata._flushes.durable_offset >= end.offset

    def _still_lacks(self, machine: Machine) -> bool:
        end = self._lost.get(machine.node_id)
        if end is None:
            return False
        metadata = machine.metadata
        if metadata is None or metadata.raft.log_end < end or metadata._flushes.durable_offset < end.offset:
            return True
        del self._lost[machine.node_id]
        return False


def damaged_metadata(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """A controller is killed, whichever it is if the given node is none, and starts with damaged metadata.

    At a moment when the others have all that it has: while the metadata change, there are few.
    """
    chance = nemesis.chance_of(fault)
    if not nemesis.is_controller(machine):
        machine = chance.choice([one for one in nemesis.machines if nemesis.is_controller(one)])
    is_over: list[bool] = []

    def damage() -> None:
        nemesis.quorum.on_lost(machine)
        may_forget_vote = nemesis.quorum.may_forget_vote()
        machine.kill("killed; its metadata are damaged")
        files = {path: data for path, data in machine.disk.files().items() if file_names.CLUSTER_METADATA_TOPIC in path}
        for path, left in _drawn(chance, files, may_forget_vote):
            nemesis.note(f"{path} of node {machine.node_id} is {'gone' if left is None else 'damaged'}")
            machine.damage(path, left)

    def look() -> None:
        if is_over:
            return
        if nemesis.quorum.may_lose(machine) and not nemesis.must_live(machine):
            damage()
        else:
            nemesis.later(_LOOKS_EVERY_MS, look)

    def end() -> None:
        is_over.append(True)
        nemesis.start(machine)

    look()
    return end


def rotten_metadata(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """A bit of a controller's log or of its snapshots reads wrong while it runs."""
    chance = nemesis.chance_of(fault)
    if not nemesis.is_controller(machine):
        machine = chance.choice([one for one in nemesis.machines if nemesis.is_controller(one)])
    if not machine.is_serving or machine.is_rotten or nemesis.must_live(machine):
        return None
    return machine.rot(chance, of_metadata=True)


def _drawn(chance: Random, found: dict[str, bytes], may_forget_vote: bool) -> list[tuple[str, bytes | None]]:
    """Which files, and what is left of each."""
    by_name = {path.rpartition("/")[2]: path for path in found}
    snapshots = [path for name, path in sorted(by_name.items()) if SnapshotId.of_name(name)]
    logs = [path for name, path in sorted(by_name.items()) if name.endswith(file_names.LOG) and found[path]]
    what = chance.choice(("epochs", "vote", "log", *["snapshots"] * 3 * bool(snapshots)))
    match what:
        case "snapshots":
            paths = snapshots if chance.random() < _ALL_SNAPSHOTS else snapshots[-1:]
        case "log":
            paths = [chance.choice(logs)] if logs else []
            return [(path, with_a_bit_turned(chance, found[path])) for path in paths]
        case _:
            name = file_names.LEADER_EPOCHS if what == "epochs" else QUORUM_STATE
            paths = [by_name[name]] if name in by_name else []
    if what == "vote":
        left = [*_PARTS, _nothing] if may_forget_vote else _PARTS
    else:
        left = [*_PARTS, _nothing, lambda content: with_a_bit_turned(chance, content)]
    return [(path, chance.choice(left)(found[path])) for path in paths]


def _nothing(content: bytes) -> None:
    return None


_PARTS: Final[list[Callable[[bytes], bytes | None]]] = [
    lambda content: b"",
    lambda content: bytes(len(content)),
    lambda content: content[: len(content) // 2],
]
"""What file systems leave of a file after a crash."""


def with_a_bit_turned(chance: Random, content: bytes) -> bytes:
    turned = bytearray(content)
    if turned:
        turned[chance.randrange(len(turned))] ^= 1 << chance.randrange(8)
    return bytes(turned)
