"""What two registries say of one topic, so that it can be compared."""

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

TYPE = "application/vnd.schemaregistry.v1+json"


def ask(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": TYPE}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read() or b"null")


def done(url: str, method: str, path: str, body: object = None) -> Any:
    status, reply = ask(url, method, path, body)
    assert status == 200, f"{method} {path} {body}: {status} {reply}"
    return reply


def registered(url: str, subject: str, text: str, kind: str = "AVRO", references: object = ()) -> int:
    body = {"schema": text, "schemaType": kind, "references": references}
    return int(done(url, "POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"])


def what_it_says(url: str) -> dict[str, Any]:
    """Subjects, versions, schemas, ids and levels, with and without what is soft-deleted."""
    live, every = (sorted(done(url, "GET", f"/subjects?deleted={which}")) for which in ("false", "true"))
    subjects = {}
    ids = set()
    for subject in every:
        place = f"/subjects/{quote(subject, safe='')}/versions"
        numbers = {which: ask(url, "GET", f"{place}?deleted={which}") for which in ("false", "true")}
        versions = {}
        for number in numbers["true"][1] if numbers["true"][0] == 200 else ():
            found = done(url, "GET", f"{place}/{number}?deleted=true")
            ids.add(found["id"])
            versions[number] = _schema(found)
        live_numbers = numbers["false"][1] if numbers["false"][0] == 200 else numbers["false"][1]["error_code"]
        level = ask(url, "GET", f"/config/{quote(subject, safe='')}")
        subjects[subject] = live_numbers, versions, level[1].get("compatibilityLevel") if level[0] == 200 else None
    by_id = {
        id: (_schema(done(url, "GET", f"/schemas/ids/{id}")), done(url, "GET", f"/schemas/ids/{id}/versions"))
        for id in ids
    }
    return {
        "live": live,
        "subjects": subjects,
        "ids": by_id,
        "level": done(url, "GET", "/config")["compatibilityLevel"],
    }


def _schema(found: dict[str, Any]) -> tuple[Any, ...]:
    """Without its form, which each registry chooses for itself."""
    kind, text = found.get("schemaType", "AVRO"), found["schema"]
    says = " ".join(text.split()) if kind == "PROTOBUF" else json.loads(text)
    references = [tuple(sorted(one.items())) for one in found.get("references") or ()]
    return found.get("id"), kind, says, references
