"""The `_bulk` API of OpenSearch and Elasticsearch: what a request says, and what each item of its reply means. Pure.

A document is written with the record's offset as its version, if its id is the record's key (`external` versioning):
the server keeps the highest. So a record that comes again, or late, changes nothing, and says so with a conflict.
"""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.connect.connectors.web.client import for_people
from ottla.connect.errors import Retriable

PATH: Final = "_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"
"""Of each item no more than what is looked at: replies stay small."""
_WAITS: Final = ("cluster_block_exception",)
"""A disk is full, or a shard has no primary: somebody is to mend it, and then it works."""


class Action(NamedTuple):
    """One line of a request, or two."""

    position: int
    kind: str
    """`index`, `update` or `delete`."""
    into: str
    """The index."""
    id: str
    document: bytes | None
    version: int | None
    """The record's offset, if the id is its key."""

    def lines(self) -> bytes:
        about: dict[str, Any] = {"_index": self.into, "_id": self.id}
        if self.version is not None:
            about |= {"version": self.version, "version_type": "external"}
        if self.kind == "update":
            about["retry_on_conflict"] = 3
        head = json.dumps({self.kind: about}, ensure_ascii=False).encode() + b"\n"
        if self.document is None:
            return head
        if self.kind == "update":
            return head + b'{"doc":' + self.document + b',"doc_as_upsert":true}\n'
        return head + self.document + b"\n"


class Outcome(Enum):
    DONE = "done"
    LATER = "later"
    REFUSED = "refused"
    BROKEN = "broken"
    """It is not about this document: the connector fails."""


class Item(NamedTuple):
    outcome: Outcome
    reason: str


def outcomes(reply: bytes, actions: Sequence[Action], secrets: Sequence[str] = ()) -> list[Item]:
    """What became of each action; reasons are without secrets. Raises `Retriable` for what is no reply to them."""
    try:
        said = json.loads(reply)
        items = said["items"] if said.get("items") is not None or actions else []
        found = [_outcome(item, action, secrets) for item, action in zip(items, actions, strict=True)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Retriable(f"the server's reply to _bulk is none: {type(error).__name__}: {error}") from None
    return found


def _outcome(item: Any, action: Action, secrets: Sequence[str]) -> Item:
    said = item[action.kind]
    status = said["status"]
    if isinstance(status, bool) or not isinstance(status, int):
        raise ValueError("an item's status is no number")
    error = said.get("error")
    if error is None and (200 <= status < 300 or (status == 404 and action.kind == "delete")):
        return Item(Outcome.DONE, "")
    kind, reason = ("", str(error)) if not isinstance(error, dict) else (error.get("type"), error.get("reason"))
    text = f"{for_people(f'{kind}: {reason}', secrets)} ({status})"
    if status == 409:
        # The same record or a newer one is there. An update without a version met another writer, and comes again.
        return Item(Outcome.LATER if action.version is None else Outcome.DONE, text)
    if status in (408, 429) or status >= 500 or kind in _WAITS:
        return Item(Outcome.LATER, text)
    if status in (401, 403, 404):
        return Item(Outcome.BROKEN, text)
    return Item(Outcome.REFUSED, text)


def to_send_again(actions: Sequence[Action], found: Sequence[Item]) -> list[Action]:
    """Those that are to come later; and behind each, all of its document, so that they come in their order."""
    late: set[tuple[str, str]] = set()
    again: list[Action] = []
    for action, item in zip(actions, found, strict=True):
        document = (action.into, action.id)
        if item.outcome is Outcome.LATER:
            late.add(document)
            again.append(action)
        elif document in late and item.outcome is Outcome.DONE and action.version is None:
            again.append(action)
    return again
