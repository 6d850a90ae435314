"""Schemas from one registry to a file or to another registry, with ids, versions, references, settings and deletions.

Theory of operation. What is there is read in the order of ids, so that what a schema refers to comes before it. The
other registry is put into the mode IMPORT, subject by subject: then ids and versions are taken as they are given. What
is there already is passed over, so a copy that was interrupted is resumed by starting it again. Deletions, configs and
modes come last.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final, TextIO

from ottla.cli.registry.connecting import connect, connect_target
from ottla.client.blocking.schema_registry import SchemaRegistryClient
from ottla.client.schema_registry.registry_core import name
from ottla.client.schema_registry.registry_errors import RegistryError

_SCHEMA: Final = "schema"
_CONFIG: Final = "config"
_MODE: Final = "mode"
_KEPT: Final = ("subject", "version", "id", "schemaType", "schema", "references", "metadata", "ruleSet", "deleted")
_CONFIG_NAMES: Final = {"compatibilityLevel": "compatibility"}
_EVERYTHING: Final = ":*:"


def everything(registry: SchemaRegistryClient, prefix: str | None) -> Iterator[dict[str, Any]]:
    """Schemas in an order in which they can be registered, then configs and modes."""
    schemas: list[dict[str, Any]] = []
    live: set[tuple[str, int]] = set()
    subjects = registry.subjects(prefix or _EVERYTHING, deleted=True)
    for subject in subjects:
        path = f"/subjects/{name(subject)}/versions"
        try:
            live.update((subject, version) for version in registry.versions(subject))
        except RegistryError as error:
            if not error.is_missing:
                raise
        for version in registry.versions(subject, deleted=True):
            found = registry.ask("GET", f"{path}/{version}", deleted="true")
            kept = {key: found[key] for key in _KEPT if found.get(key) is not None}
            kept["deleted"] = (subject, version) not in live
            schemas.append(kept)
    for schema in in_order(schemas):
        yield {"kind": _SCHEMA, **schema}
    contexts = sorted({f":{one[1:].partition(':')[0]}:" for one in subjects if one.startswith(":.")})
    places: list[str | None] = [None, *contexts, *subjects]
    for place in places:
        where = "" if place is None else f"/{name(place)}"
        for kind in (_CONFIG, _MODE):
            try:
                found = registry.ask("GET", f"/{kind}{where}")
            except RegistryError as error:
                if not error.is_missing:
                    raise
                continue
            yield {"kind": kind, "subject": place, "value": found}


def in_order(schemas: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """By id, and each after what it refers to."""
    waiting = sorted(schemas, key=lambda one: (one["id"], one["subject"], one["version"]))
    known = {(one["subject"], one["version"]): one for one in waiting}
    placed: dict[tuple[str, int], None] = {}
    ordered: list[dict[str, Any]] = []

    def place(one: dict[str, Any], depth: int) -> None:
        key = (one["subject"], one["version"])
        if key in placed or depth > 1_000:
            return
        placed[key] = None
        for reference in one.get("references", ()):
            subject = reference["subject"]
            if one["subject"].startswith(":.") and not subject.startswith(":."):
                subject = f":{one['subject'][1:].partition(':')[0]}:{subject}"
            referred = known.get((subject, reference["version"]))
            if referred is not None:
                place(referred, depth + 1)
        ordered.append(one)

    for one in waiting:
        place(one, 0)
    return ordered


class Receiver:
    """Takes what `everything` gives into another registry."""

    def __init__(self, registry: SchemaRegistryClient, *, keep_mode: bool) -> None:
        self._registry = registry
        self._keeps_mode = keep_mode
        self._imports: set[str] = set()
        self.added = 0
        self.passed_over = 0
        self._deleted: list[dict[str, Any]] = []
        self._settings: list[dict[str, Any]] = []

    def take(self, one: dict[str, Any]) -> None:
        if one["kind"] != _SCHEMA:
            self._settings.append(one)
            return
        subject = one["subject"]
        path = f"/subjects/{name(subject)}/versions"
        if self._is_there(path, one):
            self.passed_over += 1
        else:
            self._begin_import(subject)
            self._registry.ask("POST", path, {key: one[key] for key in _KEPT if key in one and key != "deleted"})
            self.added += 1
        if one.get("deleted"):
            self._deleted.append(one)

    def _is_there(self, path: str, one: dict[str, Any]) -> bool:
        try:
            found = self._registry.ask("GET", f"{path}/{one['version']}", deleted="true")
        except RegistryError as error:
            if not error.is_missing:
                raise
            return False
        if found["id"] != one["id"] or found["schema"] != one["schema"]:
            raise ValueError(
                f"{one['subject']} version {one['version']} is another schema there: id {found['id']}, not {one['id']}"
            )
        return True

    def _begin_import(self, subject: str) -> None:
        if subject not in self._imports and not self._keeps_mode:
            self._imports.add(subject)
            self._registry.ask("PUT", f"/mode/{name(subject)}", {"mode": "IMPORT"}, force="true")

    def finish(self) -> None:
        """What comes when all schemas are there: modes back, deletions, settings."""
        for subject in sorted(self._imports):
            self._registry.ask("DELETE", f"/mode/{name(subject)}")
        for one in reversed(self._deleted):
            try:
                self._registry.ask("DELETE", f"/subjects/{name(one['subject'])}/versions/{one['version']}")
            except RegistryError as error:
                if not error.is_missing:
                    raise
        for one in self._settings:
            where = "" if one["subject"] is None else f"/{name(one['subject'])}"
            value = {_CONFIG_NAMES.get(key, key): member for key, member in one["value"].items()}
            parameters = {"force": "true"} if one["kind"] == _MODE else {}
            self._registry.ask("PUT", f"/{one['kind']}{where}", value, **parameters)


def export_schemas(options: argparse.Namespace) -> int:
    with ExitStack() as at_end:
        registry = at_end.enter_context(connect(options))
        file: TextIO = sys.stdout
        if options.file != "-":
            file = at_end.enter_context(open(options.file, "w", encoding="utf-8"))
        count = 0
        for one in everything(registry, options.prefix):
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
            count += one["kind"] == _SCHEMA
    print(f"exported {count} versions", file=sys.stderr)
    return 0


def import_schemas(options: argparse.Namespace) -> int:
    with ExitStack() as at_end:
        receiver = Receiver(at_end.enter_context(connect(options)), keep_mode=options.keep_mode)
        file: TextIO = sys.stdin
        if options.file != "-":
            file = at_end.enter_context(open(options.file, encoding="utf-8"))
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    one = json.loads(line)
                except ValueError as problem:
                    raise ValueError(f"{options.file}, line {number}: not JSON: {problem}") from None
                receiver.take(one)
        receiver.finish()
    print(f"imported {receiver.added} versions, {receiver.passed_over} were there")
    return 0


def copy_schemas(options: argparse.Namespace) -> int:
    with connect(options) as source, connect_target(options) as target:
        receiver = Receiver(target, keep_mode=options.keep_mode)
        for one in everything(source, options.prefix):
            receiver.take(one)
        receiver.finish()
    print(f"copied {receiver.added} versions, {receiver.passed_over} were there")
    return 0
