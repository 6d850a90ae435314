"""Is the model of crashes any good? A log that forgets to sync something must be caught, and soon.

Each canary is the log as it is, on a disk that does nothing where one kind of sync is asked for. Not among them are the
checkpoints of the directory and the producer snapshots: one that is damaged is as good as none, by design.
"""

from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import Any

import pytest

from ottla.log import file_names
from ottla.testing.memory_disk import MemoryDisk, MemoryFile
from tests.property.log.log_histories import CONFIG, LogHistory
from tests.property.log.log_lives import calls_of, crash

# How many crashes it may take until one is noticed.
SOON = 1_000


class ForgetfulDisk:
    """Passes everything on, but for the syncs of the paths that it forgets."""

    def __init__(self, disk: MemoryDisk, forgets: Callable[[str], bool]) -> None:
        self._disk = disk
        self._forgets = forgets

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        file = self._disk.open(path, create=create)
        if self._forgets(path):
            file.sync = lambda: None  # type: ignore[method-assign]
        return file

    def sync_dir(self, path: str) -> None:
        if not self._forgets(path):
            self._disk.sync_dir(path)

    def sync_all(self, paths: Sequence[str]) -> None:
        self._disk.sync_all([path for path in paths if not self._forgets(path)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)


def is_noticed(forgets: Callable[[str], bool]) -> bool:
    class ForgetfulHistory(LogHistory):
        def port(self) -> Any:
            return ForgetfulDisk(self.disk, forgets)

    cases = ((seed, call) for seed in count() for call in range(1, calls_of(seed, CONFIG, 25) + 2))
    for seed, call in islice(cases, SOON):
        try:
            crash(seed, call, CONFIG, 25, ForgetfulHistory)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize(
    "ending",
    [
        file_names.LOG,
        file_names.INDEX,
        file_names.TIME_INDEX,
        file_names.TRANSACTION_INDEX,
        f"{file_names.LEADER_EPOCHS}.tmp",
        "/data/orders-0",
        "/data",
    ],
)
def test_a_sync_that_is_left_out_is_noticed(ending: str) -> None:
    assert is_noticed(lambda path: path.endswith(ending))


def test_nothing_is_noticed_where_nothing_is_left_out() -> None:
    assert not is_noticed(lambda path: False)
