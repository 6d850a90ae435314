"""A disk that is full or broken for a while, at every call to it: see `log_histories` for what goes on then, and how.

After that, restarts and crashes like any others: everything that was acknowledged as flushed is there, and the rest of
what `test_crashes` asks for.
"""

import pytest

from ottla.log.log_config import LogConfig
from tests.property.log.log_histories import COMPACTED, CONFIG
from tests.property.log.log_lives import fail_everywhere

TOPICS = pytest.mark.parametrize("config", [CONFIG, COMPACTED], ids=["leader", "follower of a compacted topic"])


@TOPICS
@pytest.mark.parametrize("seed", range(3))
def test_a_failing_call_loses_nothing_that_was_flushed(seed: int, config: LogConfig) -> None:
    assert fail_everywhere(seed, config, operations=25) > 0


@pytest.mark.long
@TOPICS
@pytest.mark.parametrize("seed", range(2000, 2040))
def test_a_failing_call_in_a_long_history_loses_nothing_that_was_flushed(seed: int, config: LogConfig) -> None:
    assert fail_everywhere(seed, config, operations=60) > 0
