"""What the controller decides, one family of requests a module: each reads the image and changes nothing.

A family is imported when it is first asked for (PEP 562): a node that starts needs few of them, and the messages of
the others would cost more than all it does need. `broker_epochs` is what requests of brokers have in common.
"""

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.machines.metadata.decisions import (
        allocate_producer_ids,
        alter_acls,
        alter_configs,
        alter_partition,
        alter_quotas,
        alter_scram,
        alter_tokens,
        assign_directories,
        create_partitions,
        create_topics,
        delete_topics,
        elect_leaders,
        heartbeats,
        reassign_partitions,
        registration,
        update_features,
    )

__all__ = [
    "allocate_producer_ids",
    "alter_acls",
    "alter_configs",
    "alter_partition",
    "alter_quotas",
    "alter_scram",
    "alter_tokens",
    "assign_directories",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "heartbeats",
    "reassign_partitions",
    "registration",
    "update_features",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
