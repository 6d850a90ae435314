"""The calls of an admin: one table of them, and how a class gets them as methods.

Theory of operation. A call is a coroutine function of `Asking` in one of twenty modules, and a tool needs one or two of
them. So a method is a stand-in until it is first named: then its module is imported, and the real method, with the
call's signature and docstring, takes the stand-in's place. Type checkers read `calls.pyi`, which is generated from this
table and from the calls themselves (`make generate`).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

_MODULES: Final = {
    "topics": (
        "create_topics delete_topics delete_topics_by_id list_topics describe_topics describe_topics_by_id"
        " create_partitions"
    ),
    "configs": "describe_configs incremental_alter_configs list_config_resources list_client_metrics_resources",
    "records": "list_offsets delete_records",
    "groups.listing": "list_groups list_consumer_groups",
    "groups.describing": "describe_consumer_groups describe_classic_groups",
    "groups.offsets": "list_consumer_group_offsets alter_consumer_group_offsets delete_consumer_group_offsets",
    "groups.removal": "delete_groups remove_members_from_consumer_group",
    "groups.share": (
        "describe_share_groups list_share_group_offsets alter_share_group_offsets delete_share_group_offsets"
    ),
    "groups.streams": "describe_streams_groups",
    "cluster_nodes": "describe_cluster unregister_broker client_instance_id",
    "quorum_voters": "describe_metadata_quorum add_raft_voter remove_raft_voter",
    "feature_levels": "describe_features update_features",
    "log_dirs": "describe_log_dirs describe_replica_log_dirs alter_replica_log_dirs",
    "replicas": "elect_leaders alter_partition_reassignments list_partition_reassignments",
    "transaction_states": (
        "describe_producers describe_transactions list_transactions abort_transaction fence_producers"
        " force_terminate_transaction"
    ),
    "access.acls": "describe_acls create_acls delete_acls",
    "access.quotas": "describe_client_quotas alter_client_quotas",
    "access.scram": "describe_user_scram_credentials alter_user_scram_credentials",
    "access.tokens": (
        "create_delegation_token renew_delegation_token expire_delegation_token describe_delegation_tokens"
    ),
}
"""By module of this package: its calls."""

_SAME_AS: Final = {
    "list_streams_group_offsets": "list_consumer_group_offsets",
    "alter_streams_group_offsets": "alter_consumer_group_offsets",
    "delete_streams_group_offsets": "delete_consumer_group_offsets",
    "delete_consumer_groups": "delete_groups",
    "delete_share_groups": "delete_groups",
    "delete_streams_groups": "delete_groups",
}
"""Java's names of calls that are the same for every type of group."""

CALLS: Final = {name: (f"{__package__}.{module}", name) for module, names in _MODULES.items() for name in names.split()}
"""By method: the module and the name of its call."""
CALLS.update({name: CALLS[other] for name, other in _SAME_AS.items()})


class _Method:
    """Stands in for a method until it is first named. `make` makes it of its call."""

    __slots__ = ("_call", "_make", "_name")

    def __init__(self, name: str, call: tuple[str, str], make: Callable[[Any], Any]) -> None:
        self._name = name
        self._call = call
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        module, name = self._call
        method = self._make(getattr(import_module(module), name))
        for base in owner.__mro__:
            if base.__dict__.get(self._name) is self:
                setattr(base, self._name, method)
        return method.__get__(instance, owner)


class _Calls:
    """What has all calls as methods, made by `make`."""

    def __init_subclass__(cls, make: Callable[[Any], Any] | None = None) -> None:
        if make is not None:
            for name, call in CALLS.items():
                setattr(cls, name, _Method(name, call, make))


BlockingCalls = AsyncCalls = _Calls
"""The same here; type checkers see methods that wait, and methods to be awaited."""
