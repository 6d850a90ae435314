"""The id of a run, which Debezium's connectors write into the headers of their records."""

import time
import uuid


def new_run_id() -> str:
    """A UUID of version 7, as Debezium has one for each run: the time, and chance."""
    ms = time.time_ns() // 1_000_000
    chance = uuid.uuid4().int
    number = ms << 80 | 0x7 << 76 | (chance >> 68 & 0xFFF) << 64 | 0b10 << 62 | chance & ((1 << 62) - 1)
    return str(uuid.UUID(int=number))
