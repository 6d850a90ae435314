"""Which addresses a process listens at, as Linux tells it."""

import os
from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"


def listening_addresses(pid: int | None) -> list[str]:
    """The hosts, one for each socket, as /proc writes them: 127.0.0.1 is 0100007F."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # Closed since; what listens stays.
            target = os.readlink(link)
            if target.startswith("socket:"):
                inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTEN and words[9] in inodes:
                found.append(words[1].rpartition(":")[0])
    return found
