"""`bootstrap.checkpoint`: the records that a metadata log begins with, left by formatting for the first controller."""

from ottla.base.ports import Disk
from ottla.machines.metadata.controller.activation import bootstrap_records
from ottla.runtime.metadata.storage.snapshots import read_snapshot
from ottla.wire.message import Message

BOOTSTRAP = "bootstrap.checkpoint"


def read_bootstrap(disk: Disk, metadata_directory: str) -> list[Message]:
    """Without the file, the latest features."""
    path = f"{metadata_directory}/{BOOTSTRAP}"
    return list(read_snapshot(disk, path).records) if disk.exists(path) else bootstrap_records()
