"""Crashes at every call to the disk, with any part of what was not synced lost.

One seed is one history of operations on a directory. It is played once to count the calls, and then again for each of
them with a crash there. What the crash leaves is then taken up by further lives, which end in other ways. At each start
the directory must hold up: everything that was flushed is there, offsets have no holes and no repetitions, nothing is
there that was not written, indexes, epochs and producer state agree with the log, and it takes appends.
"""

import pytest

from ottla.log.log_config import LogConfig
from tests.property.log.log_histories import COMPACTED, CONFIG
from tests.property.log.log_lives import crash_everywhere

TOPICS = pytest.mark.parametrize("config", [CONFIG, COMPACTED], ids=["leader", "follower of a compacted topic"])
# Seeds of the short run, and how many crashes each must reach: at least 2,000 together.
SEEDS, POINTS = range(5), 200


@TOPICS
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_any_call_loses_nothing_that_was_flushed(seed: int, config: LogConfig) -> None:
    assert crash_everywhere(seed, config, operations=25) >= POINTS


@pytest.mark.long
@TOPICS
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_a_crash_at_any_call_of_a_long_history_loses_nothing_that_was_flushed(seed: int, config: LogConfig) -> None:
    assert crash_everywhere(seed, config, operations=60) >= POINTS
