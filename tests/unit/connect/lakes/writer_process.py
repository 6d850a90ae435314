"""A process with a sink that puts records until it is killed.

Its argument is JSON: the connector's configuration, the paths it may use, up to which offset, and where to die by
itself: `before` or `after` the second commit. It prints a line for every put.
"""

import json
import logging
import os
import sys
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.connect.connector import Sink, SinkContext
from ottla.connect.plugins import find_connector
from tests.unit.connect.lakes.given_lakes import records

SIZE = 20


def row(offset: int) -> dict[str, Any]:
    return {"id": offset, "note": f"v{offset}"}


def started(config: dict[str, str], allowed: str) -> tuple[Sink, int]:
    """A sink, and where its target is."""
    kind: Any = find_connector(config["connector.class"]).load()
    worker = {"file.allowed.paths": allowed}
    sink: Sink = kind(config, SinkContext("into", logging.getLogger("writer"), lambda: 0, worker))
    sink.start()
    return sink, (sink.positions() or {}).get(TopicPartition("orders", 0), 0)


def write(sink: Sink, offset: int, end: int) -> None:
    """Puts records from this offset on."""
    while offset < end:
        after = min(offset + SIZE, end)
        sink.put(
            records([row(one) for one in range(offset, after)], first=offset), {TopicPartition("orders", 0): after}
        )
        offset = after
        print("put", offset, flush=True)


def die_at(where: str, config: dict[str, str]) -> None:
    """Dies around the second commit, with all of its files written."""
    owner: Any
    if "Iceberg" in config["connector.class"]:
        import pyiceberg.table

        owner, name = pyiceberg.table.Table, "_do_commit"
    else:
        from ottla.connect.connectors import s3_directory

        owner, name = s3_directory.S3Directory, "_commit"
    real, calls = getattr(owner, name), [0]

    def dies(self: Any, *given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2 and where == "before":
            os._exit(9)
        done = real(self, *given, **named)
        if calls[0] == 2:
            os._exit(9)
        return done

    setattr(owner, name, dies)


if __name__ == "__main__":
    config, allowed, end, where = json.loads(sys.argv[1])
    if where is not None:
        die_at(where, config)
    write(*started(config, allowed), end)
