"""Finding a node's directories, and formatting them where nobody configured anything."""

import logging
import os
from functools import partial

from ottla.base.ids import Uuid, uuid_text
from ottla.base.ports import Clock, Disk
from ottla.node.clock import java_date
from ottla.node.config import NodeConfig
from ottla.node.storage.meta_properties import NotFormatted, Storage, load_storage

_log = logging.getLogger(__name__)


def find_storage(disk: Disk, clock: Clock, config: NodeConfig, *, may_format: bool) -> Storage:
    """Checks the directories; with `may_format`, new ones become a cluster of their own first."""
    load = partial(
        load_storage,
        disk,
        config.log_dirs,
        config.metadata_log_dir,
        config.node_id,
        new_uuid=new_uuid,
        date=java_date(),
    )
    try:
        return load()
    except NotFormatted:
        if not may_format or any(map(_has_something, config.log_dirs)):
            raise
    _format(disk, clock, config)
    return load()


def _format(disk: Disk, clock: Clock, config: NodeConfig) -> None:
    from ottla.node.storage.formatting import FormatPlan, World, format_storage  # Once in the life of a directory.

    plan = FormatPlan(
        uuid_text(_new_cluster_id()), config.node_id, config.log_dirs, config.metadata_log_dir, ignore_formatted=True
    )
    world = World(disk, clock, java_date(), new_uuid, lambda: os.urandom(20))
    format_storage(plan, world, lambda line: _log.info("%s", line))


def new_uuid() -> Uuid:
    """A random (version 4) UUID."""
    value = bytearray(os.urandom(16))
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return Uuid(bytes(value))


def _new_cluster_id() -> Uuid:
    while uuid_text(uuid := new_uuid()).startswith("-"):
        pass
    return uuid


def _has_something(path: str) -> bool:
    """A directory with files in it that is not formatted is somebody else's: it is not touched."""
    return os.path.isdir(path) and any(name != ".lock" for name in os.listdir(path))
