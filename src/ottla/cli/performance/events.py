"""Events of the verifiable clients: one JSON object a line, with its time first. Several threads may print."""

import json
import sys
import threading
import time
from typing import Any

_lock = threading.Lock()


def event(name: str, **fields: Any) -> None:
    line = json.dumps({"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}, separators=(",", ":"))
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
