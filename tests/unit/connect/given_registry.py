"""A registry in memory, for converters: what `schemas.registry_port` asks for, and no more."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.schemas.registry_port import RegisteredSchema, SchemaToRegister


@dataclass
class GivenRegistry:
    """Ids count from 1. `calls` are the calls that it answered."""

    schemas: list[SchemaToRegister] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def _found(self, subject: str | None, id: int) -> RegisteredSchema:
        schema = self.schemas[id - 1]
        versions = self.subjects.get(subject or "", [])
        version = versions.index(id) + 1 if id in versions else None
        return RegisteredSchema(schema.kind, schema.text, id=id, subject=subject, version=version)

    def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema:
        self.calls.append("schema_by_id")
        return self._found(subject, id)

    def schema_by_guid(self, guid: str) -> RegisteredSchema:
        raise NotImplementedError

    def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> RegisteredSchema:
        self.calls.append("register")
        if schema not in self.schemas:
            self.schemas.append(schema)
        id = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if id not in versions:
            versions.append(id)
        return self._found(subject, id)

    def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        self.calls.append("look_up")
        if schema not in self.schemas or self.schemas.index(schema) + 1 not in self.subjects.get(subject, []):
            raise LookupError(f"no such schema in {subject}")
        return self._found(subject, self.schemas.index(schema) + 1)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        self.calls.append("version")
        if subject not in self.subjects:
            raise LookupError(f"no such subject {subject}")
        return self._found(subject, self.subjects[subject][version if version < 0 else version - 1])

    def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> Any:
        raise NotImplementedError
