"""The admin for asyncio: every call of `client/admin` as a method to await. The blocking admin has the same methods."""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, cast

from ottla.client.admin.asking import Asking
from ottla.client.admin.families import (
    acls,
    cluster_nodes,
    configs,
    describing,
    feature_levels,
    listing,
    log_dirs,
    offsets,
    quorum_voters,
    quotas,
    records,
    removal,
    replicas,
    scram,
    share,
    streams,
    tokens,
    topics,
    transaction_states,
)
from ottla.client.admin.late_calls import Method
from ottla.client.cluster.cluster import Cluster
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.promise import spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from os import PathLike

    from ottla.client.keywords import AdminKeywords

P = ParamSpec("P")
T = TypeVar("T")


def _awaiting(
    call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Admin", P], Coroutine[Any, Any, T]]:
    return cast(Any, Method(cast(Any, call), _in_the_loop))  # type: ignore[no-any-return]


def _in_the_loop(
    call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Admin", P], Coroutine[Any, Any, T]]:
    @wraps(call)
    async def method(admin: "Admin", /, *args: P.args, **keywords: P.kwargs) -> T:
        admin._io.check()
        return await admin._io.future(spawn(call(admin._asking, *args, **keywords)))

    return method


class Admin:
    """Administers a cluster, from the event loop that runs when it is made.

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            (await admin.create_topics([NewTopic("clicks", partitions=3)])).raise_first()

    A call on many items returns `Results`: the outcome of each, which raises where it failed. A call on one thing
    returns its value, or raises. `timeout` limits one call, in seconds; else `default.api.timeout.ms` does.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **keywords: "Unpack[AdminKeywords]") -> None:
        self._begin(read_settings(Scope.ADMIN, settings, keywords))

    @classmethod
    def from_properties(cls, path: "str | PathLike[str]", /, **keywords: "Unpack[AdminKeywords]") -> "Admin":
        """Settings from a properties file, with keywords over them."""
        with open(path, "rb") as file:
            settings = read_settings_file(Scope.ADMIN, file.read(), keywords)
        admin = cls.__new__(cls)
        admin._begin(settings)
        return admin

    def _begin(self, settings: ClientSettings) -> None:
        settings.warn(stacklevel=4)
        self._io = AsyncioWorld(settings)
        self._cluster = Cluster(self._io.world, settings)
        self._asking = Asking(self._cluster)

    async def close(self) -> None:
        """Ends connections. Calls that are under way raise `ClientClosed`."""
        self._cluster.close()
        self._io.close()

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `admin-client-metrics`; times in ms."""
        return self._asking.metrics.values()

    async def __aenter__(self) -> "Admin":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    create_topics = _awaiting(topics.create_topics)
    delete_topics = _awaiting(topics.delete_topics)
    delete_topics_by_id = _awaiting(topics.delete_topics_by_id)
    list_topics = _awaiting(topics.list_topics)
    describe_topics = _awaiting(topics.describe_topics)
    describe_topics_by_id = _awaiting(topics.describe_topics_by_id)
    create_partitions = _awaiting(topics.create_partitions)

    describe_configs = _awaiting(configs.describe_configs)
    incremental_alter_configs = _awaiting(configs.incremental_alter_configs)
    list_config_resources = _awaiting(configs.list_config_resources)
    list_client_metrics_resources = _awaiting(configs.list_client_metrics_resources)

    list_offsets = _awaiting(records.list_offsets)
    delete_records = _awaiting(records.delete_records)

    list_groups = _awaiting(listing.list_groups)
    list_consumer_groups = _awaiting(listing.list_consumer_groups)

    describe_consumer_groups = _awaiting(describing.describe_consumer_groups)
    describe_classic_groups = _awaiting(describing.describe_classic_groups)

    list_consumer_group_offsets = _awaiting(offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = _awaiting(offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _awaiting(offsets.delete_consumer_group_offsets)
    list_streams_group_offsets = _awaiting(offsets.list_consumer_group_offsets)
    alter_streams_group_offsets = _awaiting(offsets.alter_consumer_group_offsets)
    delete_streams_group_offsets = _awaiting(offsets.delete_consumer_group_offsets)

    delete_groups = _awaiting(removal.delete_groups)
    delete_consumer_groups = _awaiting(removal.delete_groups)
    delete_share_groups = _awaiting(removal.delete_groups)
    delete_streams_groups = _awaiting(removal.delete_groups)
    remove_members_from_consumer_group = _awaiting(removal.remove_members_from_consumer_group)

    describe_share_groups = _awaiting(share.describe_share_groups)
    list_share_group_offsets = _awaiting(share.list_share_group_offsets)
    alter_share_group_offsets = _awaiting(share.alter_share_group_offsets)
    delete_share_group_offsets = _awaiting(share.delete_share_group_offsets)

    describe_streams_groups = _awaiting(streams.describe_streams_groups)

    describe_cluster = _awaiting(cluster_nodes.describe_cluster)
    unregister_broker = _awaiting(cluster_nodes.unregister_broker)
    client_instance_id = _awaiting(cluster_nodes.client_instance_id)

    describe_metadata_quorum = _awaiting(quorum_voters.describe_metadata_quorum)
    add_raft_voter = _awaiting(quorum_voters.add_raft_voter)
    remove_raft_voter = _awaiting(quorum_voters.remove_raft_voter)

    describe_features = _awaiting(feature_levels.describe_features)
    update_features = _awaiting(feature_levels.update_features)

    describe_log_dirs = _awaiting(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = _awaiting(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = _awaiting(log_dirs.alter_replica_log_dirs)

    elect_leaders = _awaiting(replicas.elect_leaders)
    alter_partition_reassignments = _awaiting(replicas.alter_partition_reassignments)
    list_partition_reassignments = _awaiting(replicas.list_partition_reassignments)

    describe_producers = _awaiting(transaction_states.describe_producers)
    describe_transactions = _awaiting(transaction_states.describe_transactions)
    list_transactions = _awaiting(transaction_states.list_transactions)
    abort_transaction = _awaiting(transaction_states.abort_transaction)
    fence_producers = _awaiting(transaction_states.fence_producers)
    force_terminate_transaction = _awaiting(transaction_states.force_terminate_transaction)

    describe_acls = _awaiting(acls.describe_acls)
    create_acls = _awaiting(acls.create_acls)
    delete_acls = _awaiting(acls.delete_acls)

    describe_client_quotas = _awaiting(quotas.describe_client_quotas)
    alter_client_quotas = _awaiting(quotas.alter_client_quotas)

    describe_user_scram_credentials = _awaiting(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = _awaiting(scram.alter_user_scram_credentials)

    create_delegation_token = _awaiting(tokens.create_delegation_token)
    renew_delegation_token = _awaiting(tokens.renew_delegation_token)
    expire_delegation_token = _awaiting(tokens.expire_delegation_token)
    describe_delegation_tokens = _awaiting(tokens.describe_delegation_tokens)
