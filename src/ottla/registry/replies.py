"""Bodies of replies, in the form of Confluent Platform 8.1."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.registry.decisions import Registration
from ottla.registry.entities import guid_text
from ottla.registry.records import CONFIG_MEMBERS, reference_objects
from ottla.registry.requests import CONFIG_FIELDS
from ottla.registry.state import Version
from ottla.registry.subjects import context_of, qualified
from ottla.schemas.registry_port import Reference
from ottla.schemas.schema import Entity


def _content(
    kind: str, references: tuple[Reference, ...], metadata: Mapping[str, Any] | None, rules: Mapping[str, Any] | None
) -> dict[str, Any]:
    members: dict[str, Any] = {"schemaType": kind}
    if references:
        members["references"] = reference_objects(references)
    if metadata is not None:
        members["metadata"] = metadata
    if rules is not None:
        members["ruleSet"] = rules
    return members


def version_object(
    version: Version,
    *,
    text: str | None = None,
    references: tuple[Reference, ...] | None = None,
    tags: list[dict[str, Any]] | None = None,
    aliases: list[str] | None = None,
) -> dict[str, Any]:
    """A version of a subject."""
    members = {"subject": version.subject, "version": version.number, "id": version.id, "guid": version.guid}
    shown = version.references if references is None else references
    members |= _content(version.kind, shown, version.metadata, version.rules)
    members["schema"] = version.text if text is None else text
    if tags:
        members["schemaTags"] = tags
    members |= {"ts": version.timestamp_ms, "deleted": version.deleted}
    if aliases:
        members["aliases"] = aliases
    return members


def id_object(
    version: Version,
    *,
    with_subject: bool = False,
    text: str | None = None,
    references: tuple[Reference, ...] | None = None,
    tags: list[dict[str, Any]] | None = None,
    max_id: int | None = None,
) -> dict[str, Any]:
    """A schema that was asked for by id or guid."""
    members: dict[str, Any] = {}
    if with_subject:
        members |= {"subject": version.subject, "version": version.number}
    members["guid"] = version.guid
    shown = version.references if references is None else references
    members |= _content(version.kind, shown, version.metadata, version.rules)
    members["schema"] = version.text if text is None else text
    if tags:
        members["schemaTags"] = tags
    if max_id is not None:
        members["maxId"] = max_id
    members |= {"ts": version.timestamp_ms, "deleted": version.deleted}
    return members


def registration_object(registered: Registration, text: str | None = None) -> dict[str, Any]:
    schema = registered.schema
    members: dict[str, Any] = {
        "id": registered.id,
        "version": registered.version,
        "guid": guid_text(registered.digest),
    }
    members |= _content(schema.kind, schema.references, schema.metadata, schema.rules)
    members["schema"] = schema.text if text is None else text
    return members


def qualified_references(version: Version) -> tuple[Reference, ...]:
    """With the context that they are meant in (`referenceFormat=qualified`)."""
    if context_of(version.subject) == ".":
        return version.references
    return tuple(
        Reference(one.name, qualified(version.subject, one.subject), one.version) for one in version.references
    )


def tag_objects(tagged: Mapping[Entity, Iterable[str]], wanted: list[str]) -> list[dict[str, Any]]:
    """Entities that have one of these tags; `*` is any."""
    return [
        {"schemaEntity": {"entityPath": entity.path, "entityType": entity.kind}, "tags": list(tags)}
        for entity, tags in tagged.items()
        if "*" in wanted or any(tag in wanted for tag in tags)
    ]


def config_object(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config that was asked for."""
    return {name: config[name] for name in CONFIG_MEMBERS if config.get(name) is not None}


def changed_config_object(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config that was changed: by the names of requests."""
    return {name: config[member] for name, member in CONFIG_FIELDS.items() if config.get(member) is not None}
