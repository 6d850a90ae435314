"""A process that reads a source into a file, to be killed: a line is a transaction, of records and the offset behind.

    python -m tests.clients.connect.reader_process CONFIG.json LOG MAX_BYTES

A line that is not whole was not committed: it is cut off when the next process begins.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ottla.connect.errors import Retriable
from tests.clients.connect.read_source import Log, Run


def committed(path: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Records and offsets of all whole lines."""
    records: list[dict[str, Any]] = []
    offsets: dict[str, dict[str, Any]] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        said = json.loads(line)
        records += said["records"]
        offsets |= said["offsets"]
    return records, offsets


def main(config: str, path: str, max_bytes: str) -> None:
    log, target = Log(), Path(path)
    _, log.offsets = committed(target)
    with target.open("r+b") as file:
        whole = target.read_bytes().rpartition(b"\n")
        file.truncate(len(whole[0]) + len(whole[1]))
        file.seek(0, os.SEEK_END)
        while True:
            try:
                with Run(json.loads(Path(config).read_text()), log, max_bytes=int(max_bytes)) as run:
                    while True:
                        run.poll(0.1, say=False)
                        if run.unsaid:
                            rows = [
                                {"topic": one["topic"], "key": one["key"], "value": one["value"]} for one in log.records
                            ]
                            log.records = []
                            file.write(
                                json.dumps({"records": rows, "offsets": log.offsets}, default=repr).encode() + b"\n"
                            )
                            file.flush()
                            run.say()
            except Retriable:
                log.records = []
                _, log.offsets = committed(target)
                time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
