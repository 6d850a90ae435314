"""Disks that answer with errors, and files that are gone or damaged.

While a disk may fail, the node on it may give up (`Machine.may_fail`); it is started again with a sound one.
"""

import errno
from typing import TYPE_CHECKING, Final

from ottla.log import file_names
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.faults.metadata_damage import with_a_bit_turned

if TYPE_CHECKING:
    from ottla.testing.sim.faults.fault_kinds import End
    from ottla.testing.sim.faults.nemesis import Nemesis

_OPENING: Final = ("open", "create", "list_dir")
_GROWING: Final = ("create", "mkdir", "rename", "write", "sync")
_ANY: Final = ("",)
_LARGEST_SHARE: Final = 0.3

_CHECKPOINTS: Final = (
    file_names.RECOVERY_POINTS,
    file_names.HIGH_WATERMARKS,
    file_names.LOG_START_OFFSETS,
    file_names.CLEANER_OFFSETS,
    file_names.LEADER_EPOCHS,
)


def slow_disk(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    machine.set_slowness(1.0 + abs(fault.amount) % 500)
    return lambda: machine.set_slowness(1.0)


def full_disk(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    if nemesis.must_live(machine):
        return None
    machine.spoil_disk()
    machine.disk.usable_bytes = abs(fault.amount) % 20_000
    return machine.mend_disk


def failed_sync(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """What the sync was to make durable may be lost for good, though this life of the node still sees it.

    For whatever reason: a quota, or a thin volume, has no space when what was accepted long ago is written.
    """
    if not nemesis.may_cut_power(machine):
        return None
    nemesis.on_memory_lost(machine)
    machine.spoil_disk()
    machine.disk.fail_next("sync", errno.ENOSPC if fault.amount % 2 else errno.EIO)
    return machine.mend_disk


def failed_write(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    if nemesis.must_live(machine):
        return None
    machine.spoil_disk()
    machine.disk.fail_next("write", errno.EIO)
    return machine.mend_disk


def no_descriptors(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """The process has as many files open as it may."""
    return _fail_sometimes(nemesis, fault, machine, errno.EMFILE, _OPENING)


def no_memory(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """The system has no memory for what it is asked, now and then: whatever it is."""
    return _fail_sometimes(nemesis, fault, machine, errno.ENOMEM, _ANY)


def no_space(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """Others fill the disk and free it again: anything that needs room may fail, a sync of what was written too."""
    return _fail_sometimes(nemesis, fault, machine, errno.ENOSPC, _GROWING)


def disk_errors(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """The disk fails now and then, whatever it is asked."""
    return _fail_sometimes(nemesis, fault, machine, errno.EIO, _ANY)


def _fail_sometimes(
    nemesis: "Nemesis", fault: Fault, machine: Machine, error: int, operations: tuple[str, ...]
) -> "End | None":
    if not nemesis.may_cut_power(machine):  # A sync may be among what fails.
        return None
    nemesis.on_memory_lost(machine)
    machine.spoil_disk()
    chance = nemesis.chance_of(fault)
    machine.disk.fail_sometimes(chance, _LARGEST_SHARE * chance.random() ** 2, error, operations)
    return machine.mend_disk


def bit_rot(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """A bit of some partition's records reads wrong, until it is found out and mended.

    Not where the node starts with it: recovery would cut the log there, and that may be the last replica in sync.
    """
    if not machine.is_serving or machine.is_rotten or nemesis.must_live(machine):
        return None
    return machine.rot(nemesis.chance_of(fault))


def lost_files(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
    """The node is killed, and starts without some of the files that can be made again, or with what is left of them.

    Checkpoints are gone, empty or full of zeros, as file systems leave them; so are snapshots of producers, which have
    a checksum. Indexes are gone: of one that is damaged and looks sound, nobody can know it. The metadata are gone, or
    bits of their log have turned over, where the node is no controller: it fetches them again. Those of
    controllers are for `metadata_damage`.
    """
    if nemesis.must_live(machine):
        return None
    machine.kill("killed; files are lost")
    chance = nemesis.chance_of(fault)
    loses_metadata = not nemesis.is_controller(machine) and chance.random() < 0.5
    loses_all_metadata = chance.random() < 0.5
    for path, content in machine.disk.files().items():
        name = path.rpartition("/")[2]
        if file_names.CLUSTER_METADATA_TOPIC in path:
            is_lost = loses_metadata and (loses_all_metadata or name.endswith(file_names.LOG))
            left = None if loses_all_metadata else with_a_bit_turned(chance, content)
        elif name in _CHECKPOINTS or name.endswith(file_names.PRODUCER_SNAPSHOT):
            is_lost = chance.random() < 0.5
            left = chance.choice((None, b"", bytes(len(content))))
        else:
            is_lost = name.endswith((file_names.INDEX, file_names.TIME_INDEX)) and chance.random() < 0.5
            left = None
        if is_lost:
            nemesis.note(f"{path} of node {machine.node_id} is {'gone' if left is None else 'damaged'}")
            machine.lose_file(path, left)
    return lambda: nemesis.start(machine)
