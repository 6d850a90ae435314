"""A stand-in for OpenSearch and Elasticsearch: the few APIs that a sink needs, as strict as they are.

Documents have versions, external and internal ones; fields have the type of their first value; names of indices are
checked; a bulk is lines of JSON with a line's end behind the last. What the real server refuses is refused here, with
its status and type. `put_off` and `refuse_writes` make it say what a busy or locked server says.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.unit.connect.web.servers import Answer, Asked, WebServer

FILTERS = {"errors", "items.*.status", "items.*.error.type", "items.*.error.reason"}
ACTIONS = {
    "index": {"_index", "_id", "version", "version_type"},
    "delete": {"_index", "_id", "version", "version_type"},
}
ACTIONS["update"] = {"_index", "_id", "retry_on_conflict"}


class Refused(Exception):
    def __init__(self, status: int, kind: str, reason: str) -> None:
        self.answer = status, kind, reason


class SearchServer:
    def __init__(self, user: str | None = None, most_bytes: int = 1 << 20) -> None:
        self.indices: dict[str, dict[str, str]] = {}
        """Of each index the types of its fields."""
        self.mappings: dict[str, Any] = {}
        self.documents: dict[str, dict[str, tuple[int, Any]]] = {}
        """Version and content; content None is a document that was deleted."""
        self.bulks: list[list[Any]] = []
        self.put_off: Callable[[str, int], bool] = lambda id, bulk: False
        self.answer_instead: list[Answer] = []
        self._user, self._most = user, most_bytes
        self.web = WebServer(self._answer)
        self.url = self.web.url

    def close(self) -> None:
        self.web.close()

    def __enter__(self) -> "SearchServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def there(self, index: str) -> dict[str, Any]:
        """The documents that a search would find."""
        return {id: content for id, (_, content) in self.documents.get(index, {}).items() if content is not None}

    def _answer(self, asked: Asked) -> Answer:
        if self._user is not None:
            wanted = "Basic " + base64.b64encode(self._user.encode()).decode()
            if asked.headers.get("authorization") != wanted:
                return Answer(401, b'{"error":"unauthorized"}')
        try:
            url = urlsplit(asked.path)
            if url.path == "/" and asked.method == "GET":
                return _json(200, {"version": {"number": "3.2.0", "distribution": "opensearch"}})
            if url.path == "/_bulk":
                return self._bulk(asked, parse_qs(url.query))
            return self._index(asked, unquote(url.path[1:]))
        except Refused as refused:
            status, kind, reason = refused.answer
            return _json(status, {"error": {"type": kind, "reason": reason}, "status": status})

    def _index(self, asked: Asked, name: str) -> Answer:
        if asked.method == "HEAD":
            return Answer(200 if name in self.indices else 404)
        if asked.method != "PUT" or asked.headers.get("content-type") != "application/json":
            raise Refused(406, "media_type", "not supported")
        self._check_name(name)
        if name in self.indices:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}] already exists")
        said = json.loads(asked.body)
        if set(said) - {"mappings", "settings"}:
            raise Refused(400, "parse_exception", "unknown key for create index")
        self.mappings[name] = said.get("mappings", {})
        self.indices[name] = {
            field: about["type"]
            for field, about in self.mappings[name].get("properties", {}).items()
            if "type" in about
        }
        return _json(200, {"acknowledged": True})

    def _check_name(self, name: str) -> None:
        if name != name.lower() or re.search(r'[\\/*?"<>| ,#:]', name) or name[:1] in "_-+" or len(name) > 255:
            raise Refused(400, "invalid_index_name_exception", f"Invalid index name [{name}]")

    def _bulk(self, asked: Asked, query: dict[str, list[str]]) -> Answer:
        if self.answer_instead:
            return self.answer_instead.pop(0)
        if set(query) - {"filter_path"} or set(query.get("filter_path", [""])[0].split(",")) - FILTERS:
            raise Refused(400, "illegal_argument_exception", "unrecognized parameter")
        if asked.method not in ("POST", "PUT") or asked.headers.get("content-type") != "application/x-ndjson":
            raise Refused(406, "media_type", "Content-Type header is not supported")
        if len(asked.body) > self._most:
            return Answer(413, b"Request Entity Too Large")
        if not asked.body.endswith(b"\n"):
            raise Refused(400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
        lines = asked.body[:-1].split(b"\n")
        items: list[dict[str, Any]] = []
        seen: list[Any] = []
        self.bulks.append(seen)
        while lines:
            items.append(self._action(lines, seen))
        return _json(200, {"errors": any("error" in next(iter(one.values())) for one in items), "items": items})

    def _action(self, lines: list[bytes], seen: list[Any]) -> dict[str, Any]:
        ((kind, about),) = json.loads(lines.pop(0)).items()
        if kind not in ACTIONS or set(about) - ACTIONS[kind]:
            raise Refused(400, "illegal_argument_exception", f"Malformed action/metadata line: {kind} {about}")
        source = None if kind == "delete" else lines.pop(0)
        seen.append((kind, about["_id"]))
        try:
            return {kind: {"status": self._done(kind, about, source, len(self.bulks))}}
        except Refused as refused:
            status, error, reason = refused.answer
            return {kind: {"status": status, "error": {"type": error, "reason": reason}}}

    def _done(self, kind: str, about: dict[str, Any], source: bytes | None, bulk: int) -> int:
        index, id = about["_index"], about["_id"]
        self._check_name(index)
        if not id or len(id.encode()) > 512:
            raise Refused(400, "illegal_argument_exception", "if _id is specified it must not be empty, nor too long")
        if self.put_off(id, bulk):
            raise Refused(429, "es_rejected_execution_exception", "rejected execution of coordinating operation")
        documents = self.documents.setdefault(index, {})
        before, content = documents.get(id, (-1, None))
        version = before + 1 if before >= 0 else 1
        if "version" in about:
            assert about["version_type"] == "external"
            if about["version"] <= before:
                reason = f"[{id}]: version conflict, current version [{before}] is higher or equal"
                raise Refused(409, "version_conflict_engine_exception", reason)
            version = about["version"]
        if kind == "delete":
            documents[id] = version, None
            return 200 if content is not None else 404
        said = json.loads(source or b"")
        if kind == "update":
            if set(said) - {"doc", "doc_as_upsert"}:
                raise Refused(400, "x_content_parse_exception", "unknown field")
            said = {**(content or {}), **said["doc"]}
        self._check_types(index, said)
        documents[id] = version, said
        return 201 if content is None else 200

    def _check_types(self, index: str, document: dict[str, Any]) -> None:
        fields = self.indices.setdefault(index, {})
        for name, value in document.items():
            kind = "object" if isinstance(value, dict) else "long" if isinstance(value, int | float) else "text"
            known = fields.setdefault(name, kind)
            if (
                kind != known
                and not (kind == "text" and known == "date")
                and not (known in _NUMBERS and kind == "long")
            ):
                raise Refused(400, "mapper_parsing_exception", f"failed to parse field [{name}] of type [{known}]")


_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "date")


def _json(status: int, said: Any) -> Answer:
    return Answer(status, json.dumps(said).encode(), {"Content-Type": "application/json"})
