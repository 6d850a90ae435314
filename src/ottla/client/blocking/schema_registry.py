"""The blocking client of schema registries. Safe for any number of threads."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ottla.client.io.loop_thread import LoopThread
from ottla.client.promise import Promise
from ottla.client.schema_registry.registry_core import RegistryCore, name
from ottla.client.schema_registry.registry_settings import read_registry_client_settings
from ottla.client.schema_registry.registry_tls import registry_tls
from ottla.schemas.registry_port import RegisteredSchema, SchemaToRegister

T = TypeVar("T")


class SchemaRegistryClient:
    """Asks a schema registry: ours, Confluent's, Karapace's, or another with the same API.

        with SchemaRegistryClient("http://localhost:8081") as registry:
            registered = registry.register("clicks-value", SchemaToRegister("AVRO", text))
            print(registered.id, registry.schema_by_id(registered.id).text)

    `url` may name several, with commas between: the next is asked when one does not answer. `basic_auth` is
    `user:password`, `token` a bearer's. Raises `RegistryError` for what is refused, `RegistryUnreachable` if nobody
    answers.
    """

    def __init__(self, url: str | Mapping[str, Any] | None = None, /, **settings: Any) -> None:
        given = dict(url) if isinstance(url, Mapping) else {} if url is None else {"url": url}
        read = read_registry_client_settings({**given, **settings})
        self._loop = LoopThread("ottla-schema-registry")
        try:
            self._core = RegistryCore(self._loop.world, read, registry_tls(self._loop.world, read))
        except BaseException:
            self._loop.stop()
            raise
        self._loop.end_with(self, self._core.close)

    def close(self) -> None:
        with self._loop.lock:
            self._core.close()
        self._loop.stop()

    def __enter__(self) -> "SchemaRegistryClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, begin: Callable[[], Promise[T]]) -> T:
        return self._loop.ask(begin)

    # --- schemas ---

    def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema:
        """The schema with this id, in the context of the subject if one is named."""
        return self._wait(lambda: self._core.schema_by_id(id, subject))

    def schema_by_guid(self, guid: str) -> RegisteredSchema:
        return self._wait(lambda: self._core.schema_by_guid(guid))

    def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> RegisteredSchema:
        """Registers a schema, if it is not there; either way, what it is registered as."""
        return self._wait(lambda: self._core.register(subject, schema, normalize=normalize))

    def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """What a schema is registered as. Raises `RegistryError` (40403) if it is not."""
        return self._wait(lambda: self._core.look_up(subject, schema, normalize=normalize, deleted=deleted))

    def version(self, subject: str, version: int = -1, *, deleted: bool = False) -> RegisteredSchema:
        """A version of a subject; -1 is the latest."""
        return self._wait(lambda: self._core.version(subject, version, deleted=deleted))

    def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> RegisteredSchema:
        """The latest version that has all these properties in its metadata."""
        return self._wait(lambda: self._core.latest_with_metadata(subject, properties))

    # --- the rest ---

    def subjects(self, prefix: str | None = None, *, deleted: bool = False) -> list[str]:
        found: list[str] = self.ask("GET", "/subjects", subjectPrefix=prefix, deleted="true" if deleted else None)
        return found

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        path = f"/subjects/{name(subject)}/versions"
        found: list[int] = self.ask("GET", path, deleted="true" if deleted else None)
        return found

    def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """Any request of the API: `ask("PUT", "/config", {"compatibility": "FULL"})`. What is answered, as JSON."""
        return self._wait(lambda: self._core.ask(method, path, body, parameters))

    def clear_caches(self) -> None:
        with self._loop.lock:
            self._core.clear()
