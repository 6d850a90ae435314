"""What serializers ask of a registry, as protocols. Clients that speak HTTP are above this room and are given to it.

A client raises its own errors for what it cannot reach or is refused; they pass through a serializer untouched. It may
cache: a serializer keeps what it has compiled, and asks once for each id, guid, and subject with schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.schemas.schema import SchemaKind


@dataclass(frozen=True, slots=True)
class Reference:
    """One entry of a schema's `references`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaToRegister:
    """A schema as it is sent."""

    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rules: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a registry gave it. What a reply did not say is None."""

    kind: SchemaKind
    text: str
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    references: tuple[Reference, ...] = ()
    resolved: Mapping[str, str] = field(default_factory=dict)
    """The texts of all that it refers to, by name, what a text needs before the text: as `parse` wants them. The client
    fetches them, each once."""
    metadata: Mapping[str, Any] | None = None
    """`tags`, `properties`, `sensitive`, as in JSON."""
    rules: Mapping[str, Any] | None = None
    """`migrationRules`, `domainRules`, as in JSON."""


class BlockingRegistry(Protocol):
    """A registry that is asked by a thread that waits."""

    def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema: ...
    def schema_by_guid(self, guid: str) -> RegisteredSchema: ...
    def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> RegisteredSchema: ...
    def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema: ...
    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        """Version -1 is the latest."""

    def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> RegisteredSchema: ...


class AsyncRegistry(Protocol):
    """A registry that is asked by a coroutine. The same calls."""

    async def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema: ...
    async def schema_by_guid(self, guid: str) -> RegisteredSchema: ...
    async def register(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False
    ) -> RegisteredSchema: ...
    async def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema: ...
    async def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema: ...
    async def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> RegisteredSchema: ...
