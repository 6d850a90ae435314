"""Playing a history with one thing going wrong in its first life, at a call to the disk, and some lives after that.

A case is a seed and a call: both together decide all of it, so a failure can be played again.
"""

import errno
from random import Random

from ottla.log.log_config import LogConfig
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.property.log.log_histories import LogHistory


def calls_of(seed: int, config: LogConfig, operations: int) -> int:
    """How many calls to the disk the first life makes when nothing goes wrong."""
    history = LogHistory(seed, MemoryDisk(Random(seed)), config)
    history.live(operations)
    return history.disk.calls


def crash_everywhere(seed: int, config: LogConfig, operations: int) -> int:
    """A crash at each call, and one when all is over, maybe after a clean stop. Returns how many there were."""
    return sum(crash(seed, call, config, operations) for call in range(1, calls_of(seed, config, operations) + 2))


def fail_everywhere(seed: int, config: LogConfig, operations: int) -> int:
    """A failing disk from each call on, for one call or a few. Returns how many crashes there were after that."""
    return sum(fail(seed, call, config, operations) for call in range(1, calls_of(seed, config, operations) + 1))


def crash(seed: int, call: int, config: LogConfig, operations: int, kind: type[LogHistory] = LogHistory) -> int:
    history = kind(seed, MemoryDisk(Random(seed)), config)
    history.disk.crash_at(call)
    return _live_on(history, operations, Random(seed * 1_000_003 + call), f"seed {seed}, crash at call {call}")


def fail(seed: int, call: int, config: LogConfig, operations: int) -> int:
    chance = Random(seed * 1_000_003 + call)
    history = LogHistory(seed, MemoryDisk(Random(seed + call)), config)
    error = chance.choice([errno.ENOSPC, errno.ENOSPC, errno.EIO])
    times = chance.choice([1, 1, 2, 5, 12])
    history.disk.fail_at(call, error, times)
    history.disk.syncs_lose_pages = chance.random() < 0.5
    if chance.random() < 0.5:
        history.disk.crash_at(call + chance.randint(1, 80))
    what = f"seed {seed}, {errno.errorcode[error]} at call {call}, {times} times"
    return _live_on(history, operations, chance, what)


def _live_on(history: LogHistory, operations: int, chance: Random, what: str) -> int:
    """The life that was prepared, and some lives after it; after the last, one that nothing happens to.

    Returns how many of them were cut short, by a power cut or a kill.
    """
    points = 0
    try:
        while True:
            try:
                history.live(operations)
            except Crashed:
                points += 1
            if history.disk.syncs_lose_pages or chance.random() < 0.8:  # What is lost is lost to a kill, too.
                history.cut_power(chance)
            else:
                history.kill()
            if chance.random() < 0.4:
                break
            operations = chance.randint(0, 8)
            history.disk.crash_at(chance.randint(1, 60))
        history.live(2)
    except Exception as problem:
        raise AssertionError(f"{what}: {type(problem).__name__} {problem}") from problem
    return points
