"""What every run does around its tests."""

import gc
import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from ottla.base.lent import POISON_VARIABLE, poison

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pytest_configure(config: pytest.Config) -> None:
    """A shell has background jobs ignore Ctrl-C, and with them all that they start; what tests start must not.

    Buffers that are lent are poisoned when they are given back, here and in every process that a test starts. Such a
    process finds `tests`, too.

    Hypothesis takes no time: a machine that is busy makes every example slow, and none of them wrong. It draws the same
    examples in every run, so that a change is judged by what it changed; the long run looks for new ones.
    """
    unhurried = [hypothesis.HealthCheck.too_slow]
    same = "not long" in config.getoption("markexpr")
    hypothesis.settings.register_profile("ottla", deadline=None, suppress_health_check=unhurried, derandomize=same)
    hypothesis.settings.load_profile("ottla")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[POISON_VARIABLE] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    poison()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Imported modules and collected tests stay: the garbage collector looks for nothing among them, then or later.

    There are more of them than a test ever makes, and with them in it each full collection takes a third of a second:
    a tenth of the time of tests that make much, a quarter of that of the simulator's.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
