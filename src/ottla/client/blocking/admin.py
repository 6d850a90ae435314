"""The blocking admin: every call of `client/admin` as a method that waits for its outcome.

Safe for any number of threads. Types and names of arguments are those of the call itself.
"""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

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
from ottla.client.io.loop_thread import LoopThread
from ottla.client.promise import spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from os import PathLike

    from ottla.client.keywords import AdminKeywords

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["Admin", P], T]:
    return cast(Any, Method(cast(Any, call), _blocking))  # type: ignore[no-any-return]


def _blocking(call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["Admin", P], T]:
    @wraps(call)
    def method(admin: "Admin", /, *args: P.args, **keywords: P.kwargs) -> T:
        return admin._loop.ask(lambda: spawn(call(admin._asking, *args, **keywords)))

    return method


class Admin:
    """Administers a cluster.

        with Admin(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("clicks", partitions=3)]).raise_first()

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
        self._loop = LoopThread("ottla-admin", settings)
        with self._loop.lock:
            self._cluster = Cluster(self._loop.world, settings)
            self._asking = Asking(self._cluster)
        self._loop.end_with(self, self._cluster.close)

    def close(self) -> None:
        """Ends connections and the client's thread. Calls that are under way raise `ClientClosed`."""
        if self._loop.is_forked:
            return
        with self._loop.lock:
            self._cluster.close()
        self._loop.stop()

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `admin-client-metrics`; times in ms."""
        self._loop.check_not_forked()
        with self._loop.lock:
            return self._asking.metrics.values()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    create_topics = _waiting(topics.create_topics)
    delete_topics = _waiting(topics.delete_topics)
    delete_topics_by_id = _waiting(topics.delete_topics_by_id)
    list_topics = _waiting(topics.list_topics)
    describe_topics = _waiting(topics.describe_topics)
    describe_topics_by_id = _waiting(topics.describe_topics_by_id)
    create_partitions = _waiting(topics.create_partitions)

    describe_configs = _waiting(configs.describe_configs)
    incremental_alter_configs = _waiting(configs.incremental_alter_configs)
    list_config_resources = _waiting(configs.list_config_resources)
    list_client_metrics_resources = _waiting(configs.list_client_metrics_resources)

    list_offsets = _waiting(records.list_offsets)
    delete_records = _waiting(records.delete_records)

    list_groups = _waiting(listing.list_groups)
    list_consumer_groups = _waiting(listing.list_consumer_groups)

    describe_consumer_groups = _waiting(describing.describe_consumer_groups)
    describe_classic_groups = _waiting(describing.describe_classic_groups)

    list_consumer_group_offsets = _waiting(offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = _waiting(offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _waiting(offsets.delete_consumer_group_offsets)
    list_streams_group_offsets = _waiting(offsets.list_consumer_group_offsets)
    alter_streams_group_offsets = _waiting(offsets.alter_consumer_group_offsets)
    delete_streams_group_offsets = _waiting(offsets.delete_consumer_group_offsets)

    delete_groups = _waiting(removal.delete_groups)
    delete_consumer_groups = _waiting(removal.delete_groups)
    delete_share_groups = _waiting(removal.delete_groups)
    delete_streams_groups = _waiting(removal.delete_groups)
    remove_members_from_consumer_group = _waiting(removal.remove_members_from_consumer_group)

    describe_share_groups = _waiting(share.describe_share_groups)
    list_share_group_offsets = _waiting(share.list_share_group_offsets)
    alter_share_group_offsets = _waiting(share.alter_share_group_offsets)
    delete_share_group_offsets = _waiting(share.delete_share_group_offsets)

    describe_streams_groups = _waiting(streams.describe_streams_groups)

    describe_cluster = _waiting(cluster_nodes.describe_cluster)
    unregister_broker = _waiting(cluster_nodes.unregister_broker)
    client_instance_id = _waiting(cluster_nodes.client_instance_id)

    describe_metadata_quorum = _waiting(quorum_voters.describe_metadata_quorum)
    add_raft_voter = _waiting(quorum_voters.add_raft_voter)
    remove_raft_voter = _waiting(quorum_voters.remove_raft_voter)

    describe_features = _waiting(feature_levels.describe_features)
    update_features = _waiting(feature_levels.update_features)

    describe_log_dirs = _waiting(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = _waiting(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = _waiting(log_dirs.alter_replica_log_dirs)

    elect_leaders = _waiting(replicas.elect_leaders)
    alter_partition_reassignments = _waiting(replicas.alter_partition_reassignments)
    list_partition_reassignments = _waiting(replicas.list_partition_reassignments)

    describe_producers = _waiting(transaction_states.describe_producers)
    describe_transactions = _waiting(transaction_states.describe_transactions)
    list_transactions = _waiting(transaction_states.list_transactions)
    abort_transaction = _waiting(transaction_states.abort_transaction)
    fence_producers = _waiting(transaction_states.fence_producers)
    force_terminate_transaction = _waiting(transaction_states.force_terminate_transaction)

    describe_acls = _waiting(acls.describe_acls)
    create_acls = _waiting(acls.create_acls)
    delete_acls = _waiting(acls.delete_acls)

    describe_client_quotas = _waiting(quotas.describe_client_quotas)
    alter_client_quotas = _waiting(quotas.alter_client_quotas)

    describe_user_scram_credentials = _waiting(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = _waiting(scram.alter_user_scram_credentials)

    create_delegation_token = _waiting(tokens.create_delegation_token)
    renew_delegation_token = _waiting(tokens.renew_delegation_token)
    expire_delegation_token = _waiting(tokens.expire_delegation_token)
    describe_delegation_tokens = _waiting(tokens.describe_delegation_tokens)
