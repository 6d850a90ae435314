"""Finding a node's directories, and formatting them where nobody configured anything."""

import logging
from collections.abc import Callable
from functools import partial

from ottla.base.ids import Uuid, random_uuid, uuid_text
from ottla.base.ports import Disk
from ottla.node.clock import java_date
from ottla.node.config import NodeConfig
from ottla.node.storage.meta_properties import NotFormatted, Storage, load_storage
from ottla.runtime.world import World

_log = logging.getLogger(__name__)
_SALT_BYTES = 20


def find_storage(world: World, config: NodeConfig, *, may_format: bool) -> Storage:
    """Checks the directories; with `may_format`, new ones become a cluster of their own first."""
    load = partial(
        load_storage,
        world.disk,
        config.log_dirs,
        config.metadata_log_dir,
        config.node_id,
        new_uuid=lambda: random_uuid(world.entropy.randbytes),
        date=java_date(world.clock.now_ms()),
    )
    try:
        return load()
    except NotFormatted:
        if not may_format or any(_has_something(world.disk, path) for path in config.log_dirs):
            raise
    _format(world, config)
    return load()


def _format(world: World, config: NodeConfig) -> None:
    from ottla.node.storage.formatting import (  # Once in the life of a directory.
        FormatPlan,
        Surroundings,
        format_storage,
    )

    randbytes = world.entropy.randbytes
    plan = FormatPlan(
        uuid_text(_new_cluster_id(randbytes)),
        config.node_id,
        tuple(dict.fromkeys((*config.log_dirs, config.metadata_log_dir))),
        config.metadata_log_dir,
        ignore_formatted=True,
    )
    surroundings = Surroundings(
        world.disk,
        world.clock,
        java_date(world.clock.now_ms()),
        lambda: random_uuid(randbytes),
        lambda: randbytes(_SALT_BYTES),
    )
    format_storage(plan, surroundings, lambda line: _log.info("%s", line))


def _new_cluster_id(randbytes: Callable[[int], bytes]) -> Uuid:
    while uuid_text(uuid := random_uuid(randbytes)).startswith("-"):
        pass
    return uuid


def _has_something(disk: Disk, path: str) -> bool:
    """A directory with files in it that is not formatted is somebody else's: it is not touched."""
    return disk.is_dir(path) and any(name != ".lock" for name in disk.list_dir(path))
