"""A registry without HTTP, for serializers: what `ottla.schemas.registry_port` asks for, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from ottla.schemas.registry_port import RegisteredSchema, SchemaToRegister
from ottla.schemas.schema import parse


class NotThere(Exception):
    """What a client raises for 404."""


class RegistryInMemory:
    def __init__(self) -> None:
        self.subjects: dict[str, list[RegisteredSchema]] = {}
        self.calls: list[tuple[Any, ...]] = []
        self._by_text: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> RegisteredSchema:
        self.calls.append(("register", subject, normalize))
        versions = self.subjects.setdefault(subject, [])
        resolved = self._resolved(schema)
        parsed = parse(schema.kind, schema.text, resolved, as_new=True)
        text = parsed.normalized if normalize else parsed.canonical
        for one in versions:
            if one.text == text:
                return one
        id = self._by_text.setdefault((schema.kind, text), len(self._by_text) + 1)
        made = RegisteredSchema(
            schema.kind,
            text,
            id,
            str(UUID(int=id)),
            subject,
            len(versions) + 1,
            schema.references,
            resolved,
            None,
            schema.rules,
        )
        versions.append(made)
        return made

    def _resolved(self, schema: SchemaToRegister) -> dict[str, str]:
        resolved: dict[str, str] = {}
        for reference in schema.references:
            found = self.subjects[reference.subject][reference.version - 1]
            resolved.update(found.resolved)
            resolved[reference.name] = found.text
        return resolved

    def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        self.calls.append(("look_up", subject, normalize))
        parsed = parse(schema.kind, schema.text, self._resolved(schema))
        for one in self.subjects.get(subject, ()):
            if one.text in (parsed.canonical, parsed.normalized):
                return one
        raise NotThere(subject)

    def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema:
        self.calls.append(("schema_by_id", id, subject))
        for versions in self.subjects.values():
            for one in versions:
                if one.id == id:
                    return replace(one, subject=None, version=None)
        raise NotThere(id)

    def schema_by_guid(self, guid: str) -> RegisteredSchema:
        self.calls.append(("schema_by_guid", guid))
        return self.schema_by_id(UUID(guid).int)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        self.calls.append(("version", subject, version))
        if subject not in self.subjects:
            raise NotThere(subject)
        return self.subjects[subject][version if version < 0 else version - 1]

    def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> RegisteredSchema:
        self.calls.append(("latest_with_metadata", subject, dict(properties)))
        return self.subjects[subject][-1]

    def give_rules(self, subject: str, *rules: dict[str, Any]) -> None:
        """The latest version of a subject has these rules from now on."""
        versions = self.subjects[subject]
        versions[-1] = replace(versions[-1], rules={"domainRules": list(rules)})


class AsyncRegistryInMemory:
    """The same, awaited."""

    def __init__(self, registry: RegistryInMemory) -> None:
        self._registry = registry

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._registry, name)

        async def awaited(*arguments: Any, **options: Any) -> Any:
            return call(*arguments, **options)

        return awaited
