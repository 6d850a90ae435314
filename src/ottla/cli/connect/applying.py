"""`ottla connect apply DIR`: what a directory says and a worker does not, shown, and then done."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ottla.cli.connect.connector_files import FileConnector, read_directory
from ottla.cli.connect.rest_client import RestClient, WorkerRefused
from ottla.config.values import HIDDEN

_SECRET_WORDS = ("password", "secret", "token", "credential", "private.key")


class Change(NamedTuple):
    """`before` is None for a connector that is new, `wanted` for one that goes."""

    name: str
    before: Mapping[str, str] | None
    wanted: FileConnector | None

    def lines(self) -> Iterator[str]:
        if self.wanted is None:
            yield f"- {self.name}"
            return
        before = self.before or {}
        after = self.wanted.config
        yield f"{'+' if self.before is None else '~'} {self.name}  ({self.wanted.path})"
        for key in sorted({*before, *after}):
            old, new = before.get(key), after.get(key)
            if old == new or key == "name":
                continue
            if old is not None:
                yield f"    - {key}={_shown(key, old)}"
            if new is not None:
                yield f"    + {key}={_shown(key, new)}"


def _shown(key: str, value: str) -> str:
    is_secret = any(word in key.lower() for word in _SECRET_WORDS) and "${" not in value
    return HIDDEN if is_secret else value


def differences(
    wanted: Mapping[str, FileConnector], there: Mapping[str, Mapping[str, str]], *, prunes: bool
) -> list[Change]:
    changes = [Change(name, there.get(name), one) for name, one in wanted.items() if there.get(name) != one.config]
    if prunes:
        changes += (Change(name, config, None) for name, config in there.items() if name not in wanted)
    return changes


def apply(options: argparse.Namespace) -> int:
    client = RestClient(options.url, options.basic_auth, options.ca, options.token)
    wanted = read_directory(Path(options.directory))
    known = client.ask("GET", "/connectors?expand=info")
    there = {name: one["info"]["config"] for name, one in known.items()}
    changes = differences(wanted, there, prunes=options.delete)
    for change in changes:
        print("\n".join(change.lines()))
    if not changes:
        print(f"nothing to do: {len(wanted)} connectors are as in {options.directory}")
        return 0
    if options.dry_run:
        return 0
    if not options.yes:
        if not sys.stdin.isatty():
            print("ottla connect apply: --yes makes these changes, --dry-run only shows them", file=sys.stderr)
            return 2
        if input(f"Make these {len(changes)} changes? [y/N] ").strip().lower() not in ("y", "yes"):
            return 1
    failed = 0
    for change in changes:
        try:
            _make(client, change)
        except WorkerRefused as refused:
            failed += 1
            print(f"ottla connect apply: {change.name}: {refused}", file=sys.stderr)
    print(f"{len(changes) - failed} of {len(changes)} changes are made")
    return 1 if failed else 0


def _make(client: RestClient, change: Change) -> None:
    path = f"/connectors/{quote(change.name, safe='')}"
    if change.wanted is None:
        client.ask("DELETE", path)
    elif change.before is None and change.wanted.initial_state is not None:
        state = change.wanted.initial_state
        client.ask("POST", "/connectors", {"name": change.name, "config": change.wanted.config, "initial_state": state})
    else:
        client.ask("PUT", f"{path}/config", change.wanted.config)
