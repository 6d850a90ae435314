"""All of a cluster that is not records: topics and their settings, groups, rules of access, quotas, users.

It is read with an admin, and put back with one. What a cluster does not have or does not tell is named and left out:
rules where there is no authorizer, and always the passwords of users. A broker keeps only what it can check a password
with (SCRAM), and tells of that no more than the mechanism and the iterations: nobody can read them back.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.base.ids import TopicPartition
from ottla.cli.backup.runs import NO_TOPIC_ID, SavedTopic

if TYPE_CHECKING:
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin

Say = Callable[[str], None]
DELETING: Final[tuple[str, ...]] = ("cleanup.policy", "retention.ms", "retention.bytes", "delete.retention.ms")
"""Settings of topics that decide which records are deleted, and when."""
_AT_ONCE: Final = 500
"""Topics or groups that are asked for in one request."""


def groups(admin: "Admin", problem: Say) -> list[dict[str, Any]]:
    """What every group has committed, or, of share groups, where each partition begins."""
    from ottla.client.admin.groups.listing import GroupType

    listed = admin.list_groups()
    found: list[dict[str, Any]] = []
    sharing = [one.group_id for one in listed if one.type is GroupType.SHARE]
    others = {one.group_id: one for one in listed if one.type is not GroupType.SHARE}
    for some in _in_parts(list(others)):
        answer = admin.list_consumer_group_offsets(some)
        for group, error in answer.errors.items():
            problem(f"group {group}: {error}")
        for group, committed in answer.succeeded.items():
            offsets = [
                [partition.topic, partition.partition, one.offset, one.metadata]
                for partition, one in sorted(committed.items())
                if one is not None
            ]
            found.append({"group": group, "type": others[group].type.value, "offsets": offsets})
    for some in _in_parts(sharing):
        started = admin.list_share_group_offsets(some)
        for group, error in started.errors.items():
            problem(f"share group {group}: {error}")
        for group, starts in started.succeeded.items():
            begins = [
                [partition.topic, partition.partition, one.start_offset, ""]
                for partition, one in sorted(starts.items())
                if one is not None and one.start_offset >= 0
            ]
            found.append({"group": group, "type": GroupType.SHARE.value, "offsets": begins})
    return found


def described_topics(admin: "Admin", names: Iterable[str], problem: Say) -> "list[TopicDescription]":
    found: list[TopicDescription] = []
    for some in _in_parts(list(names)):
        answer = admin.describe_topics(some)
        for name, error in answer.errors.items():
            problem(f"topic {name}: {error}")
        found += answer.succeeded.values()
    return found


def saved_topics(
    admin: "Admin", described: "Iterable[TopicDescription]", problem: Say
) -> tuple[list[SavedTopic], dict[str, dict[str, str]]]:
    """Topics without their partitions; and all settings that are in force, by topic."""
    from ottla.client.admin.configs import ConfigResource, ConfigSource

    topics: list[SavedTopic] = []
    in_force: dict[str, dict[str, str]] = {}
    for some in _in_parts(list(described)):
        answer = admin.describe_configs([ConfigResource.topic(one.name) for one in some])
        for resource, error in answer.errors.items():
            problem(f"settings of topic {resource.name}: {error}")
        by_name = {resource.name: settings for resource, settings in answer.succeeded.items()}
        for one in some:
            settings = by_name.get(one.name, {})
            own = {
                name: entry.value or ""
                for name, entry in sorted(settings.items())
                if entry.source is ConfigSource.DYNAMIC_TOPIC and not entry.is_sensitive
            }
            in_force[one.name] = {name: entry.value or "" for name, entry in settings.items()}
            replicas = max((len(partition.replicas) for partition in one.partitions), default=1)
            compacted = "compact" in in_force[one.name].get("cleanup.policy", "")
            deleting: dict[str, str] = {
                name: in_force[one.name][name] for name in DELETING if name in in_force[one.name]
            }
            topics.append(SavedTopic(one.name, one.topic_id or NO_TOPIC_ID, replicas, own, [], compacted, deleting))
    return topics, in_force


def access(admin: "Admin", problem: Say) -> dict[str, Any]:
    """Rules, quotas, users and the settings of brokers and groups: what is missing is null."""
    return {
        "acls": _unless_refused(lambda: _acls(admin), "access rules", problem),
        "quotas": _unless_refused(lambda: _quotas(admin), "quotas", problem),
        "users": _unless_refused(lambda: _users(admin), "users", problem),
        "settings": _unless_refused(lambda: _settings(admin), "settings of brokers and groups", problem),
    }


def _unless_refused(ask: Callable[[], Any], what: str, problem: Say) -> Any:
    from ottla.client.errors import KafkaError, SecurityDisabled, UnsupportedVersion

    try:
        return ask()
    except (SecurityDisabled, UnsupportedVersion):
        return None  # no authorizer, and so no rules; or a broker that is older than what is asked for
    except KafkaError as error:
        problem(f"{what}: {error}")
        return None


def _acls(admin: "Admin") -> list[dict[str, str]]:
    return sorted(
        (
            {
                "resource_type": one.resource_type.name,
                "resource": one.resource_name,
                "pattern": one.pattern_type.name,
                "principal": one.principal,
                "host": one.host,
                "operation": one.operation.name,
                "permission": one.permission.name,
            }
            for one in admin.describe_acls()
        ),
        key=lambda one: list(one.values()),
    )


def _quotas(admin: "Admin") -> list[dict[str, Any]]:
    found = admin.describe_client_quotas()
    return sorted(
        ({"entity": [list(part) for part in entity.parts], "limits": dict(limits)} for entity, limits in found.items()),
        key=lambda one: str(one["entity"]),
    )


def _users(admin: "Admin") -> list[dict[str, Any]]:
    return [
        {"user": user, "mechanism": one.mechanism.name, "iterations": one.iterations}
        for user, credentials in sorted(admin.describe_user_scram_credentials().items())
        for one in credentials
    ]


def _settings(admin: "Admin") -> list[dict[str, Any]]:
    """Those that were given at run time to all brokers, to one, to groups and to clients' metrics."""
    from ottla.client.admin.configs import ConfigResource, ConfigSource, ResourceType

    changed = {
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        ConfigSource.DYNAMIC_GROUP,
        ConfigSource.DYNAMIC_CLIENT_METRICS,
    }
    kinds = (ResourceType.GROUP, ResourceType.CLIENT_METRICS)
    wanted = [ConfigResource.broker(), *(one for one in admin.list_config_resources(kinds) if one.type in kinds)]
    answer = admin.describe_configs(wanted)
    found = []
    for resource, settings in answer.succeeded.items():
        given = {
            name: entry.value for name, entry in sorted(settings.items()) if entry.source in changed and entry.value
        }
        if given:
            found.append({"type": resource.type.name, "name": resource.name, "settings": given})
    return found


def _in_parts(items: list[Any]) -> Iterable[list[Any]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))


# Putting it back


def restore_acls(admin: "Admin", acls: Iterable[Mapping[str, str]], problem: Say) -> int:
    from ottla.client.admin.access.acls import AclBinding, AclResourceType
    from ottla.wire.acls import AclOperation, AclPermission, PatternType

    bindings = [
        AclBinding(
            AclResourceType[one["resource_type"]],
            one["resource"],
            one["principal"],
            AclOperation[one["operation"]],
            AclPermission[one["permission"]],
            PatternType[one["pattern"]],
            one["host"],
        )
        for one in acls
    ]
    if not bindings:
        return 0
    made = admin.create_acls(bindings)
    for binding, error in made.errors.items():
        problem(f"access rule {binding.principal} {binding.operation.name} {binding.resource_name}: {error}")
    return len(made.succeeded)


def restore_quotas(admin: "Admin", quotas: Iterable[Mapping[str, Any]], problem: Say) -> int:
    from ottla.client.admin.access.quotas import QuotaEntity

    wanted = {QuotaEntity(tuple((kind, name) for kind, name in one["entity"])): dict(one["limits"]) for one in quotas}
    if not wanted:
        return 0
    made = admin.alter_client_quotas(wanted)
    for entity, error in made.errors.items():
        problem(f"quota of {entity}: {error}")
    return len(made.succeeded)


def restore_users(
    admin: "Admin", users: Iterable[Mapping[str, Any]], passwords: Mapping[str, str], problem: Say
) -> tuple[int, list[str]]:
    """Gives those their passwords for whom there is one. Returns how many, and the names of the others."""
    from ottla.client.admin.access.scram import ScramMechanism, ScramUpsertion
    from ottla.config.values import Password

    listed = list(users)
    wanted = [
        ScramUpsertion(
            one["user"], ScramMechanism[one["mechanism"]], Password(passwords[one["user"]]), one["iterations"]
        )
        for one in listed
        if one["user"] in passwords
    ]
    without = sorted({str(one["user"]) for one in listed} - set(passwords))
    if not wanted:
        return 0, without
    made = admin.alter_user_scram_credentials(wanted)
    for user, error in made.errors.items():
        problem(f"user {user}: {error}")
    return len(made.succeeded), without


def restore_settings(admin: "Admin", settings: Iterable[Mapping[str, Any]], problem: Say) -> int:
    """Of groups and of clients' metrics. Those of brokers belong to the machines that they were made for."""
    from ottla.client.admin.configs import AlterConfig, ConfigResource, ResourceType

    wanted = {
        ConfigResource(ResourceType[one["type"]], one["name"]): [
            AlterConfig(name, value) for name, value in one["settings"].items()
        ]
        for one in settings
        if one["type"] != ResourceType.BROKER.name
    }
    if not wanted:
        return 0
    made = admin.incremental_alter_configs(wanted)
    for resource, error in made.errors.items():
        problem(f"settings of {resource.type.name.lower()} {resource.name}: {error}")
    return len(made.succeeded)


def restore_group(admin: "Admin", group: str, kind: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
    """Raises the first error: the group has members, perhaps."""
    from ottla.client.admin.groups.listing import GroupType
    from ottla.client.topic_partition import OffsetAndMetadata

    if kind == GroupType.SHARE.value:
        admin.alter_share_group_offsets(group, {at: offset for at, (offset, _) in offsets.items()}).raise_first()
    else:
        committed = {at: OffsetAndMetadata(offset, metadata) for at, (offset, metadata) in offsets.items()}
        admin.alter_consumer_group_offsets(group, committed).raise_first()
