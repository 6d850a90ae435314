"""Settings that brokers keep by resource: of topics, brokers and their loggers, subscriptions to metrics, groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.cli.configs.entities import DEFAULT, Entity
from ottla.cli.configs.texts import setting_lines
from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.configs import ConfigEntry, ConfigResource
    from ottla.client.blocking.admin import Admin

_RESOURCES: Final = {
    "topics": "TOPIC",
    "brokers": "BROKER",
    "broker-loggers": "BROKER_LOGGER",
    "client-metrics": "CLIENT_METRICS",
    "groups": "GROUP",
}
_DYNAMIC: Final = {
    "topics": "DYNAMIC_TOPIC",
    "brokers": "DYNAMIC_BROKER",
    "client-metrics": "DYNAMIC_CLIENT_METRICS",
    "groups": "DYNAMIC_GROUP",
}


def is_resource(entity: Entity) -> bool:
    return entity.type in _RESOURCES


def describe(admin: Admin, entity: Entity, *, everything: bool) -> None:
    for name in _names(admin, entity):
        if name != DEFAULT and not _exists(admin, entity.type, name):
            print(f"The {entity.singular} '{name}' doesn't exist and doesn't have dynamic config.")
            continue
        entries = _settings(admin, entity.type, name, everything=everything)
        which = "All" if everything else "Dynamic"
        if name == DEFAULT:
            print(f"Default configs for {entity.type} in the cluster are:")
        else:
            print(f"{which} configs for {_named(entity, name)} are:")
        for line in setting_lines(entries):
            print(line)


def documents(admin: Admin, entity: Entity, *, everything: bool) -> list[dict[str, object]]:
    """The same for `--json`. One that is not there is left out; the defaults of all brokers have no name."""
    return [
        {
            "type": entity.type,
            "name": None if name == DEFAULT else name,
            "configs": [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": f"{entry.source.name}_CONFIG",
                    "sensitive": entry.is_sensitive,
                    "read_only": entry.is_read_only,
                }
                for entry in sorted(_settings(admin, entity.type, name, everything=everything))
            ],
        }
        for name in _names(admin, entity)
        if name == DEFAULT or _exists(admin, entity.type, name)
    ]


def _named(entity: Entity, name: str) -> str:
    return f"{entity.singular} {name}"


def _names(admin: Admin, entity: Entity) -> Iterable[str]:
    """The one that was named, or all of its type; of brokers, their defaults come last."""
    if entity.name is not None:
        return [entity.name]
    match entity.type:
        case "topics":
            return [topic.name for topic in admin.list_topics(include_internal=True)]
        case "brokers":
            return [*_brokers(admin), DEFAULT]
        case "broker-loggers":
            return _brokers(admin)
        case "client-metrics":
            return _listed(admin, entity.type)
    return sorted({*(group.group_id for group in admin.list_groups()), *_listed(admin, entity.type)})


def _brokers(admin: Admin) -> list[str]:
    return [str(node.id) for node in admin.describe_cluster().nodes]


def _listed(admin: Admin, kind: str) -> list[str]:
    """Resources that have settings of their own. A broker that cannot list them is taken to have none."""
    from ottla.client.admin.configs import ResourceType
    from ottla.client.errors import UnsupportedVersion

    try:
        return sorted(resource.name for resource in admin.list_config_resources([ResourceType[_RESOURCES[kind]]]))
    except UnsupportedVersion:
        return []


def _exists(admin: Admin, kind: str, name: str) -> bool:
    match kind:
        case "topics":
            return any(topic.name == name for topic in admin.list_topics(include_internal=True))
        case "client-metrics":
            return name in _listed(admin, kind)
        case "groups":
            return name in _listed(admin, kind) or any(group.group_id == name for group in admin.list_groups())
    return True


def _resource(kind: str, name: str) -> ConfigResource:
    from ottla.client.admin.configs import ConfigResource, ResourceType

    return ConfigResource(ResourceType[_RESOURCES[kind]], name)


def _settings(admin: Admin, kind: str, name: str, *, everything: bool) -> list[ConfigEntry]:
    resource = _resource(kind, name)
    found = admin.describe_configs([resource], include_synonyms=True)[resource].values()
    if everything or kind == "broker-loggers":
        return list(found)
    source = "DYNAMIC_DEFAULT_BROKER" if kind == "brokers" and name == DEFAULT else _DYNAMIC[kind]
    return [entry for entry in found if entry.source.name == source]


def alter(admin: Admin, entity: Entity, additions: Mapping[str, str], deletions: Iterable[str]) -> None:
    from ottla.client.admin.configs import AlterConfig, AlterOperation

    assert entity.name is not None, "the options were checked"
    resource = _resource(entity.type, entity.name)
    deletions = list(deletions)
    if entity.type == "broker-loggers":
        known = admin.describe_configs([resource])[resource]
        if unknown := [name for name in (*additions, *deletions) if name not in known]:
            raise Terse(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [AlterConfig(name, value) for name, value in additions.items()]
    changes += [AlterConfig(name, None, AlterOperation.DELETE) for name in deletions]
    admin.incremental_alter_configs({resource: changes}).raise_first()
