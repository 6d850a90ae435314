"""`ottla connect status`: what the connectors of a worker do; with `--watch`, live."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from ottla.cli.connect.rest_client import RestClient, WorkerRefused

_CLEAR = "\x1b[H\x1b[2J"


def status(options: argparse.Namespace) -> int:
    """The exit status is 1 if anything is FAILED."""
    client = RestClient(options.url, options.basic_auth, options.ca, options.token)
    while True:
        try:
            found: Mapping[str, Any] = client.ask("GET", "/connectors?expand=status")
        except WorkerRefused as refused:
            if not options.watch:
                raise
            text, failed = f"{refused}\n", True
        else:
            chosen = {name: one for name, one in found.items() if not options.name or name in options.name}
            failed = any(state == "FAILED" for one in chosen.values() for state in _states(one))
            text = json.dumps(chosen, indent=2) + "\n" if options.json else table(chosen, traces=not options.watch)
        if not options.watch:
            sys.stdout.write(text)
            return 1 if failed else 0
        sys.stdout.write(f"{_CLEAR}{client.url}  {time.strftime('%H:%M:%S')}\n\n{text}")
        sys.stdout.flush()
        time.sleep(options.interval)


def _states(one: Mapping[str, Any]) -> list[str]:
    status = one.get("status")
    if status is None:
        return []
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def table(found: Mapping[str, Any], *, traces: bool) -> str:
    """One line for each connector, and the last lines of what failed."""
    rows = [("CONNECTOR", "TYPE", "STATE", "TASKS", "WORKER")]
    notes: list[str] = []
    for name, one in sorted(found.items()):
        status = one.get("status")
        if status is None:
            rows.append((name, "", "-", "-", ""))
            continue
        tasks = ", ".join(task["state"] for task in status["tasks"]) or "-"
        rows.append((name, status["type"], status["connector"]["state"], tasks, status["connector"]["worker_id"]))
        for part in (status["connector"], *status["tasks"]):
            if part.get("trace"):
                lines = part["trace"].strip().splitlines()
                shown = lines if traces else lines[-1:]
                notes.append(f"{name}: " + "\n    ".join(shown))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"
