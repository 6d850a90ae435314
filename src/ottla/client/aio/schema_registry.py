"""The client of schema registries for asyncio: everything happens in the loop that runs when it is made."""

from collections.abc import Mapping
from typing import Any

from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.schema_registry.registry_core import RegistryCore, name
from ottla.client.schema_registry.registry_settings import read_registry_client_settings
from ottla.client.schema_registry.registry_tls import registry_tls
from ottla.schemas.registry_port import RegisteredSchema, SchemaToRegister


class SchemaRegistryClient:
    """Asks a schema registry, from the event loop that runs when it is made.

        async with SchemaRegistryClient("http://localhost:8081") as registry:
            registered = await registry.register("clicks-value", SchemaToRegister("AVRO", text))

    The blocking `ottla.SchemaRegistryClient` has the same methods.
    """

    def __init__(self, url: str | Mapping[str, Any] | None = None, /, **settings: Any) -> None:
        given = dict(url) if isinstance(url, Mapping) else {} if url is None else {"url": url}
        read = read_registry_client_settings({**given, **settings})
        self._io = AsyncioWorld()
        self._core = RegistryCore(self._io.world, read, registry_tls(self._io.world, read))
        self._io.end_with(self, None, self._core.close)

    async def close(self) -> None:
        self._io.may_finish()
        self._core.close()
        self._io.close()

    async def __aenter__(self) -> "SchemaRegistryClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- schemas ---

    async def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema:
        """The schema with this id, in the context of the subject if one is named."""
        self._io.check()
        return await self._io.future(self._core.schema_by_id(id, subject))

    async def schema_by_guid(self, guid: str) -> RegisteredSchema:
        self._io.check()
        return await self._io.future(self._core.schema_by_guid(guid))

    async def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> RegisteredSchema:
        """Registers a schema, if it is not there; either way, what it is registered as."""
        self._io.check()
        return await self._io.future(self._core.register(subject, schema, normalize=normalize))

    async def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """What a schema is registered as. Raises `RegistryError` (40403) if it is not."""
        self._io.check()
        return await self._io.future(self._core.look_up(subject, schema, normalize=normalize, deleted=deleted))

    async def version(self, subject: str, version: int = -1, *, deleted: bool = False) -> RegisteredSchema:
        """A version of a subject; -1 is the latest."""
        self._io.check()
        return await self._io.future(self._core.version(subject, version, deleted=deleted))

    async def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> RegisteredSchema:
        """The latest version that has all these properties in its metadata."""
        self._io.check()
        return await self._io.future(self._core.latest_with_metadata(subject, properties))

    # --- the rest ---

    async def subjects(self, prefix: str | None = None, *, deleted: bool = False) -> list[str]:
        found: list[str] = await self.ask("GET", "/subjects", subjectPrefix=prefix, deleted="true" if deleted else None)
        return found

    async def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        path = f"/subjects/{name(subject)}/versions"
        found: list[int] = await self.ask("GET", path, deleted="true" if deleted else None)
        return found

    async def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """Any request of the API: `ask("PUT", "/config", {"compatibility": "FULL"})`. What is answered, as JSON."""
        self._io.check()
        return await self._io.future(self._core.ask(method, path, body, parameters))

    def clear_caches(self) -> None:
        self._io.check()
        self._core.clear()
