"""A registry's client without I/O: requests to one of several registries, retries, and caches.

Theory of operation. The registry that answered last is asked first. One that cannot be reached, or says that it cannot
answer now, makes the next one be asked; when all have failed, there is a pause, longer each time and drawn at random:
clients that failed together do not come back together. What changes something is sent again too: registering a schema
twice is registering it once, and so are configs and modes. Deleting is not: it is tried again if nothing was sent.

What an id, a guid, or a version of a subject stands for never changes, so it is kept, as is the id of a schema that was
registered or looked up; the least recently used goes when there are too many. What several callers ask for at the same
time is asked once. The latest version is kept for a short time.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from ottla.base.ports import Dialer
from ottla.client.http.http_client import HttpClient, HttpFailed, HttpLimits
from ottla.client.promise import Promise, spawn
from ottla.client.schema_registry.registry_errors import RegistryError, RegistryUnreachable
from ottla.client.schema_registry.registry_settings import RegistryClientSettings
from ottla.client.world import ClientWorld
from ottla.schemas.registry_port import Reference, RegisteredSchema, SchemaToRegister
from ottla.wire.http import HttpResponse

T = TypeVar("T")

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
_SENT: Final = "application/vnd.schemaregistry.v1+json"
_TRY_AGAIN: Final = (408, 429, 500, 502, 503, 504)
_LATEST: Final = -1
_DEEPEST: Final = 100


class RegistryCore:
    """`tls` connects to https URLs; its face makes it of the settings."""

    def __init__(self, world: ClientWorld, settings: RegistryClientSettings, tls: Dialer | None = None) -> None:
        self._world = world
        self._settings = settings
        limits = HttpLimits(connect_ms=settings.connect_ms, read_ms=settings.request_ms)
        self._http = HttpClient(world, limits, tls)
        self._first = 0
        self._kept: OrderedDict[Any, tuple[RegisteredSchema, float | None]] = OrderedDict()
        self._under_way: dict[Any, Promise[RegisteredSchema]] = {}
        self.requests = 0

    def close(self) -> None:
        self._http.close()

    # --- requests ---

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Promise[Any]:
        """What the registry answers, as JSON. Rejected with `RegistryError` or `RegistryUnreachable`."""
        return spawn(self._ask(method, path, body, parameters or {}))

    async def _ask(self, method: str, path: str, body: Any, parameters: Mapping[str, Any]) -> Any:
        response = await self._send(method, target(self._settings.path + path, parameters), body)
        if response.status == 204 or not response.body:
            return None
        try:
            return json.loads(response.body)
        except ValueError:
            return response.body.decode(errors="replace")

    async def _send(self, method: str, target: str, body: Any) -> HttpResponse:
        settings = self._settings
        headers = {"Accept": _ACCEPT}
        if settings.authorization is not None:
            headers["Authorization"] = settings.authorization
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = _SENT
        problem: Exception | None = None
        for attempt in range(settings.max_retries + 1):
            if attempt:
                await self._world.sleep(self._pause_ms(attempt))
            for _ in settings.origins:
                origin = settings.origins[self._first]
                self.requests += 1
                try:
                    response = await self._http.ask(
                        origin, method, target, data, headers, repeatable=method != "DELETE"
                    )
                except HttpFailed as failed:
                    problem = RegistryUnreachable(f"no schema registry answers: {failed}")
                    if self._http.is_closed or (failed.was_sent and method == "DELETE"):
                        raise problem from None
                else:
                    if response.status < 400:
                        return response
                    problem = error_of(response)
                    if response.status not in _TRY_AGAIN or (method == "DELETE" and response.status != 503):
                        raise problem
                self._first = (self._first + 1) % len(settings.origins)
        assert problem is not None
        raise problem

    def _pause_ms(self, attempt: int) -> float:
        """Full jitter: anything up to a bound that doubles."""
        most: float = min(self._settings.wait_ms * 2 ** (attempt - 1), self._settings.most_wait_ms)
        return most * self._world.entropy.randrange(1_001) / 1_000

    # --- what serializers ask ---

    def schema_by_id(self, id: int, subject: str | None = None) -> Promise[RegisteredSchema]:
        return self._known(("id", id, subject), lambda: self._by_id(id, subject))

    async def _by_id(self, id: int, subject: str | None) -> RegisteredSchema:
        parameters = {"fetchMaxId": "false", **({} if subject is None else {"subject": subject})}
        found = await self._ask("GET", f"/schemas/ids/{id}", None, parameters)
        return await self._resolved(found, id=id, subject=subject)

    def schema_by_guid(self, guid: str) -> Promise[RegisteredSchema]:
        return self._known(("guid", guid), lambda: self._by_guid(guid))

    async def _by_guid(self, guid: str) -> RegisteredSchema:
        found = await self._ask("GET", f"/schemas/guids/{name(guid)}", None, {})
        return await self._resolved(found, guid=guid)

    def register(self, subject: str, schema: SchemaToRegister, *, normalize: bool = False) -> Promise[RegisteredSchema]:
        key = ("register", subject, _key(schema), normalize)
        return self._known(key, lambda: self._register(subject, schema, normalize))

    async def _register(self, subject: str, schema: SchemaToRegister, normalize: bool) -> RegisteredSchema:
        parameters = {"normalize": "true"} if normalize else {}
        path = f"/subjects/{name(subject)}/versions"
        found = await self._ask("POST", path, body_of(schema), parameters)
        if "version" not in found:
            # Older registries tell the id alone.
            found = {**await self._ask("POST", f"/subjects/{name(subject)}", body_of(schema), parameters), **found}
        self._forget_latest(subject)
        return await self._resolved({**body_of(schema), **found}, subject=subject)

    def look_up(
        self, subject: str, schema: SchemaToRegister, *, normalize: bool = False, deleted: bool = False
    ) -> Promise[RegisteredSchema]:
        key = ("look up", subject, _key(schema), normalize, deleted)
        return self._known(key, lambda: self._look_up(subject, schema, normalize, deleted))

    async def _look_up(
        self, subject: str, schema: SchemaToRegister, normalize: bool, deleted: bool
    ) -> RegisteredSchema:
        parameters = _flags(normalize=normalize, deleted=deleted)
        found = await self._ask("POST", f"/subjects/{name(subject)}", body_of(schema), parameters)
        return await self._resolved(found, subject=subject)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Promise[RegisteredSchema]:
        """Version -1 is the latest."""
        is_latest = version == _LATEST
        key = ("version", subject, version, deleted)
        return self._known(
            key,
            lambda: self._version(subject, "latest" if is_latest else str(version), deleted),
            self._settings.latest_ttl_s if is_latest else None,
        )

    async def _version(self, subject: str, version: str, deleted: bool) -> RegisteredSchema:
        path = f"/subjects/{name(subject)}/versions/{version}"
        return await self._resolved(await self._ask("GET", path, None, _flags(deleted=deleted)), subject=subject)

    def latest_with_metadata(self, subject: str, properties: Mapping[str, str]) -> Promise[RegisteredSchema]:
        pairs = tuple(sorted(properties.items()))
        return self._known(
            ("metadata", subject, pairs),
            lambda: self._latest_with_metadata(subject, pairs),
            self._settings.latest_ttl_s,
        )

    async def _latest_with_metadata(self, subject: str, pairs: tuple[tuple[str, str], ...]) -> RegisteredSchema:
        parameters = {"key": [key for key, _ in pairs], "value": [value for _, value in pairs]}
        found = await self._ask("GET", f"/subjects/{name(subject)}/metadata", None, parameters)
        return await self._resolved(found, subject=subject)

    # --- caches ---

    def _known(
        self, key: Any, ask: Callable[[], Coroutine[Any, None, RegisteredSchema]], ttl_s: float | None = None
    ) -> Promise[RegisteredSchema]:
        kept = self._kept.get(key)
        if kept is not None:
            if kept[1] is None or self._world.now_s() < kept[1]:
                self._kept.move_to_end(key)
                return Promise.resolved(kept[0])
            del self._kept[key]
        waiting = self._under_way.get(key)
        if waiting is not None:
            return waiting
        promise = self._under_way[key] = spawn(ask())

        def settle(done: Promise[RegisteredSchema]) -> None:
            self._under_way.pop(key, None)
            if done.error is None and (ttl_s is None or ttl_s > 0):
                until_s = None if ttl_s is None else self._world.now_s() + ttl_s
                self._kept[key] = done.value(), until_s
                while len(self._kept) > self._settings.cache_capacity:
                    self._kept.popitem(last=False)

        promise.on_done(settle)
        return promise

    def _forget_latest(self, subject: str) -> None:
        for deleted in (False, True):
            self._kept.pop(("version", subject, _LATEST, deleted), None)

    def clear(self) -> None:
        """Forgets all that was kept."""
        self._kept.clear()

    async def _resolved(
        self, found: Mapping[str, Any], *, id: int | None = None, guid: str | None = None, subject: str | None = None
    ) -> RegisteredSchema:
        """A schema with all that it refers to."""
        references = references_of(found)
        texts: dict[str, str] = {}
        await self._resolve(found.get("subject") or subject, references, texts, 0)
        return RegisteredSchema(
            kind=found.get("schemaType") or "AVRO",
            text=found["schema"],
            id=found.get("id", id),
            guid=found.get("guid", guid),
            subject=found.get("subject", subject),
            version=found.get("version"),
            references=references,
            resolved=texts,
            metadata=found.get("metadata"),
            rules=found.get("ruleSet"),
        )

    async def _resolve(
        self, parent: str | None, references: tuple[Reference, ...], texts: dict[str, str], depth: int
    ) -> None:
        if depth > _DEEPEST:
            raise RegistryError(422, 42201, "references go round in circles")
        for reference in references:
            if reference.name in texts:
                continue
            subject = _in_context_of(parent, reference.subject)
            path = f"/subjects/{name(subject)}/versions/{reference.version}"
            key = ("reference", subject, reference.version)
            kept = self._kept.get(key)
            if kept is not None:
                referred = kept[0]
            else:
                found = await self._ask("GET", path, None, {"deleted": "true"})
                referred = RegisteredSchema(
                    found.get("schemaType") or "AVRO", found["schema"], references=references_of(found)
                )
                self._kept[key] = referred, None
            await self._resolve(subject, referred.references, texts, depth + 1)
            texts[reference.name] = referred.text


def name(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")


def target(path: str, parameters: Mapping[str, Any]) -> str:
    query = urlencode([(key, value) for key, value in parameters.items() if value is not None], doseq=True)
    return f"{path}?{query}" if query else path


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, is_set in flags.items() if is_set}


def body_of(schema: SchemaToRegister) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.kind}
    if schema.references:
        body["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    if schema.metadata is not None:
        body["metadata"] = dict(schema.metadata)
    if schema.rules is not None:
        body["ruleSet"] = dict(schema.rules)
    return body


def _key(schema: SchemaToRegister) -> Any:
    """What two requests with the same schema have in common."""
    extra = None
    if schema.metadata is not None or schema.rules is not None:
        extra = json.dumps([schema.metadata, schema.rules], sort_keys=True, default=str)
    return schema.kind, schema.text, schema.references, extra


def references_of(found: Mapping[str, Any]) -> tuple[Reference, ...]:
    return tuple(
        Reference(str(one["name"]), str(one["subject"]), int(one["version"])) for one in found.get("references") or ()
    )


def _in_context_of(parent: str | None, subject: str) -> str:
    """A reference without a context is one in that of the schema that has it."""
    if parent is None or subject.startswith(":.") or not parent.startswith(":."):
        return subject
    return f":{parent[1:].partition(':')[0]}:{subject}"


def error_of(response: HttpResponse) -> RegistryError:
    try:
        found = json.loads(response.body)
        return RegistryError(response.status, int(found["error_code"]), str(found["message"]))
    except (ValueError, KeyError, TypeError):
        text = response.body.decode(errors="replace").strip()[:200]
        return RegistryError(response.status, response.status, text or "the registry says nothing more")
