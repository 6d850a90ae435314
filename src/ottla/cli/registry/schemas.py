"""Schemas, listed, shown, registered, compared and deleted."""

import argparse
import json
import re
import sys
from difflib import unified_diff
from typing import Any, Final

from ottla.cli.json_output import print_json
from ottla.cli.registry.connecting import connect
from ottla.client.blocking.schema_registry import SchemaRegistryClient
from ottla.client.schema_registry.registry_core import body_of, name
from ottla.client.schema_registry.registry_errors import RegistryError
from ottla.schemas.levels import Level
from ottla.schemas.levels import check as check_levels
from ottla.schemas.registry_port import Reference, RegisteredSchema, SchemaToRegister
from ottla.schemas.schema import KINDS, InvalidSchema, SchemaKind, parse

_KINDS_BY_NAME: Final[dict[str, SchemaKind]] = {"avsc": "AVRO", "proto": "PROTOBUF", "json": "JSON"}
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SOFT_DELETED_FIRST: Final = (40405, 40407)


def list_subjects(options: argparse.Namespace) -> int:
    with connect(options) as registry:
        if options.subject is None:
            found: list[Any] = registry.subjects(options.prefix, deleted=options.deleted)
        else:
            found = registry.versions(options.subject, deleted=options.deleted)
    if options.json:
        print_json(found)
    else:
        for one in found:
            print(one)
    return 0


def show(options: argparse.Namespace) -> int:
    with connect(options) as registry:
        deleted = {"deleted": "true"} if options.deleted else {}
        if options.what.isdecimal():
            found = registry.ask("GET", f"/schemas/ids/{options.what}")
        elif _GUID.fullmatch(options.what):
            found = registry.ask("GET", f"/schemas/guids/{options.what}")
        else:
            path = f"/subjects/{name(options.what)}/versions/{options.version}"
            found = registry.ask("GET", path, **deleted)
    if options.json:
        print_json(found)
    else:
        print(pretty(found.get("schemaType") or "AVRO", found["schema"]))
    return 0


def pretty(kind: str, text: str) -> str:
    """A text for people: JSON over several lines."""
    if kind == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def read_schema(file: str, kind: str | None, references: list[str]) -> SchemaToRegister:
    """The schema of a file. Raises `ValueError`."""
    ending = file.rpartition(".")[2].lower()
    by_name: SchemaKind | None = "AVRO" if file == "-" else _KINDS_BY_NAME.get(ending)
    found = next((one for one in KINDS if one == kind), by_name)
    if found is None:
        raise ValueError(f"{file}: the format does not follow from the name; give --type AVRO, PROTOBUF or JSON")
    if file == "-":
        text = sys.stdin.read()
    else:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    return SchemaToRegister(found, text, tuple(map(_reference, references)))


def _reference(text: str) -> Reference:
    named, equals, place = text.partition("=")
    subject, _, version = place.rpartition(":")
    if not equals or not subject or not version.lstrip("-").isdecimal():
        raise ValueError(f"--reference {text}: it must be NAME=SUBJECT:VERSION")
    return Reference(named, subject, int(version))


def register(options: argparse.Namespace) -> int:
    schema = read_schema(options.file, options.type, options.reference)
    with connect(options) as registry:
        path = f"/subjects/{name(options.subject)}/versions"
        parameters = {"normalize": "true"} if options.normalize else {}
        found = registry.ask("POST", path, body_of(schema), **parameters)
        if "version" not in found:
            found |= registry.ask("POST", f"/subjects/{name(options.subject)}", body_of(schema), **parameters)
    if options.json:
        print_json(found)
    else:
        print(f"{options.subject} version {found['version']}, id {found['id']}")
    return 0


def check(options: argparse.Namespace) -> int:
    """0 if it could be registered, 2 if not."""
    schema = read_schema(options.file, options.type, options.reference)
    with connect(options) as registry:
        path = f"/compatibility/subjects/{name(options.subject)}/versions"
        parameters = {"normalize": "true"} if options.normalize else {}
        found = registry.ask("POST", path, body_of(schema), verbose="true", **parameters)
    if found["is_compatible"]:
        print("compatible")
        return 0
    print("not compatible:")
    for message in found.get("messages") or ():
        print(f"  {message}")
    return 2


def diff(options: argparse.Namespace) -> int:
    with connect(options) as registry:
        old = registry.version(options.subject, _number(options.old), deleted=options.old != "latest")
        if options.new == "latest" or options.new.isdecimal():
            new = registry.version(options.subject, _number(options.new), deleted=options.new != "latest")
            new_name = f"version {new.version}"
        else:
            new = _of_file(registry, options)
            new_name = options.new
    old_name = f"version {old.version}"
    lines = unified_diff(
        pretty(old.kind, old.text).splitlines(),
        pretty(new.kind, new.text).splitlines(),
        old_name,
        new_name,
        lineterm="",
    )
    print("\n".join(lines) or "the texts are the same")
    for line in readings(old, new, old_name, new_name):
        print(line)
    return 0


def _of_file(registry: SchemaRegistryClient, options: argparse.Namespace) -> RegisteredSchema:
    schema = read_schema(options.new, options.type, [])
    return RegisteredSchema(schema.kind, schema.text)


def _number(text: str) -> int:
    if text == "latest":
        return -1
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a version")
    return int(text)


def readings(old: RegisteredSchema, new: RegisteredSchema, old_name: str, new_name: str) -> list[str]:
    """Whether each can read what the other writes, and why not."""
    try:
        old_parsed = parse(old.kind, old.text, old.resolved)
        new_parsed = parse(new.kind, new.text, new.resolved)
        backward = check_levels(Level.BACKWARD, new_parsed, [(None, old_parsed)])
        forward = check_levels(Level.FORWARD, new_parsed, [(None, old_parsed)])
    except InvalidSchema as problem:
        return [f"they cannot be compared: {problem}"]
    lines = []
    for verdict, reader, writer in ((backward, new_name, old_name), (forward, old_name, new_name)):
        lines.append(f"{reader} {'reads' if verdict.is_compatible else 'does not read'} what {writer} writes")
        lines += (f"  {refusal.message}" for refusal in verdict.refusals)
    return lines


def delete(options: argparse.Namespace) -> int:
    path = f"/subjects/{name(options.subject)}"
    if options.version is not None:
        path += f"/versions/{options.version}"
    with connect(options) as registry:
        if options.permanent:
            try:
                found = registry.ask("DELETE", path, permanent="true")
            except RegistryError as error:
                if error.code not in _SOFT_DELETED_FIRST:
                    raise
                registry.ask("DELETE", path)
                found = registry.ask("DELETE", path, permanent="true")
        else:
            found = registry.ask("DELETE", path)
    numbers = found if isinstance(found, list) else [found]
    how = "deleted for good" if options.permanent else "deleted"
    print(f"{how}: {options.subject} {', '.join(map(str, numbers))}")
    return 0
