"""Nodes that have replayed the metadata up to the same offset have the same metadata, in every life of theirs.

So has a node that loads a snapshot instead: the records that a snapshot of an image would hold lead to an equal image.
"""

from collections.abc import Iterator
from hashlib import blake2b

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.workloads.history import History
from ottla.wire.codec import encode


class ImagesAreEqual(PeriodicInvariant):
    name = "metadata images are equal at equal offsets"
    every_us = 2_000_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._known: dict[int, tuple[str, int]] = {}

    def look(self) -> None:
        for machine in self.cluster.machines.values():
            self._look_at(machine)

    def _look_at(self, machine: Machine) -> None:
        metadata = machine.metadata
        if metadata is None or metadata.image.in_transaction:
            return
        offset = metadata.committed_offset
        digest = digest_of(metadata.image)
        known, node_id = self._known.setdefault(offset, (digest, machine.node_id))
        if known != digest:
            self.violated(f"nodes {node_id} and {machine.node_id} differ at metadata offset {offset}")
        elif node_id == machine.node_id:
            self._check_snapshot(metadata.image, offset, digest)

    def _check_snapshot(self, image: MetadataImage, offset: int, digest: str) -> None:
        loaded = MetadataImage()
        for one in image.snapshot_records():
            loaded.replay(one.message)
        if digest_of(loaded) != digest:
            self.violated(f"a snapshot at metadata offset {offset} leads to another image")


def digest_of(image: MetadataImage) -> str:
    """Of what a snapshot of it would hold, in any order."""
    digest = blake2b(digest_size=16)
    for line in sorted(_lines_of(image)):
        digest.update(line)
    return digest.hexdigest()


def _lines_of(image: MetadataImage) -> Iterator[bytes]:
    for one in image.snapshot_records():
        kind = type(one.message).__name__.encode()
        yield b"%s %d %s" % (kind, one.version, encode(one.message, one.version))
