"""Configs and modes, printed and set."""

import argparse
import json
from typing import Any

from ottla.cli.json_output import print_json
from ottla.cli.registry.connecting import connect
from ottla.client.schema_registry.registry_core import name


def _path(room: str, subject: str | None) -> str:
    return f"/{room}" if subject is None else f"/{room}/{name(subject)}"


def config(options: argparse.Namespace) -> int:
    path = _path("config", options.subject)
    changes: dict[str, Any] = {}
    for setting in options.set:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: it must be NAME=JSON")
        try:
            changes[key] = json.loads(value)
        except ValueError:
            changes[key] = value
    if options.compatibility is not None:
        changes["compatibility"] = options.compatibility
    with connect(options) as registry:
        if options.delete:
            registry.ask("DELETE", path)
        elif changes:
            registry.ask("PUT", path, changes)
        print_json(registry.ask("GET", path, defaultToGlobal="true"))
    return 0


def mode(options: argparse.Namespace) -> int:
    path = _path("mode", options.subject)
    with connect(options) as registry:
        if options.delete:
            registry.ask("DELETE", path)
        elif options.set is not None:
            registry.ask("PUT", path, {"mode": options.set}, **({"force": "true"} if options.force else {}))
        print(registry.ask("GET", path, defaultToGlobal="true")["mode"])
    return 0
