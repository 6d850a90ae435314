"""How a run ends: in good order, at once, or because something broke. The node itself is a stand-in."""

import os
import signal
from types import SimpleNamespace

import pytest

from ottla.base.errors import StorageError
from ottla.cli.node_signals import stop_signals
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.node import run
from ottla.node.process_life import STOPPED_AT_ONCE
from ottla.node.run import BROKEN, run_node
from ottla.runtime.procedure import wait_until

GIVEN = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
CONFIG = SimpleNamespace(values=parse(Scope.BROKER, GIVEN).values, node_id=1)


class StandIn:
    """Notes what is done to it. A test sets what happens on the way."""

    made: "StandIn"

    def __init__(self, world, config, *, may_format, failed, around=None, on_opened=None):
        self.world, self.failed, self.done, self.faults = world, failed, [], []
        self.loop = world.network.loop
        self.also_close = []
        self.broker = None
        StandIn.made = self

    async def start(self):
        self.done.append("started")

    def summary(self):
        return {"address": "127.0.0.1:9092"}

    async def stop(self):
        self.done.append("stopped")

    def on_fault(self, what, problem):
        self.faults.append(str(problem))

    def abandon(self):
        self.done.append("abandoned")
        self.world.network.close()


async def forever():
    """As a node that waits for what never comes."""
    await wait_until(lambda _done: None)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(run, "Node", StandIn)


def run_until(on_ready):
    return run_node(CONFIG, may_format=False, on_ready=on_ready, stop_signals=stop_signals)


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_stops_in_good_order_and_the_log_says_which(number, caplog, monkeypatch):
    # Under `nohup`, which a node respects, this process ignores SIGHUP.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_DFL)
    caplog.set_level("INFO", "ottla")
    assert run_until(lambda _: send(number)) == 0
    assert StandIn.made.done == ["started", "stopped", "abandoned"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("Kafka Server started: node 1 at 127.0.0.1:9092, after ")
    assert lines[1] == f"Terminating process due to signal {number.name}"
    assert lines[2].startswith("node 1 has stopped, after ")


def test_a_second_signal_stops_at_once(monkeypatch):
    async def never_stops(self):
        self.done.append("stopping")
        send(signal.SIGTERM)
        await forever()

    monkeypatch.setattr(StandIn, "stop", never_stops)
    assert run_until(lambda _: send(signal.SIGTERM)) == STOPPED_AT_ONCE
    assert StandIn.made.done[1:] == ["stopping", "abandoned"]


def test_a_node_that_fails_is_abandoned():
    assert run_until(lambda node: node.failed()) == BROKEN
    assert StandIn.made.done[1:] == ["abandoned"]


def breaks():
    raise AssertionError("an invariant")


def test_an_exception_that_nobody_expected_is_told_and_the_node_goes_on():
    def on_ready(node):
        node.loop.call_soon(breaks)
        node.loop.call_later(0.01, send, signal.SIGTERM)

    assert run_until(on_ready) == 0
    assert StandIn.made.faults == ["an invariant"]
    assert StandIn.made.done[1:] == ["stopped", "abandoned"]


@pytest.mark.parametrize("phase", ["start", "stop"])
def test_an_exception_while_a_node_starts_or_stops_ends_it_as_it_might_wait_forever(monkeypatch, phase):
    async def waits(self, *_):
        self.loop.call_soon(breaks)
        await forever()

    monkeypatch.setattr(StandIn, phase, waits)
    assert run_until(lambda _: send(signal.SIGTERM)) == BROKEN
    assert StandIn.made.faults == ["an invariant"]
    assert StandIn.made.done[-1] == "abandoned"


def test_what_keeps_a_node_from_starting_is_raised(monkeypatch):
    async def cannot(self):
        raise StorageError("not formatted")

    monkeypatch.setattr(StandIn, "start", cannot)
    with pytest.raises(StorageError, match="not formatted"):
        run_until(lambda _: None)
    assert StandIn.made.done == ["abandoned"]


def test_what_goes_wrong_while_it_stops_is_raised(monkeypatch):
    async def breaks(self):
        raise StorageError("the disk is gone")

    monkeypatch.setattr(StandIn, "stop", breaks)
    with pytest.raises(StorageError, match="the disk is gone"):
        run_until(lambda _: send(signal.SIGTERM))
    assert StandIn.made.done[-1] == "abandoned"


def test_a_signal_while_it_waits_for_its_quorum_ends_it(monkeypatch):
    async def waits_forever(self):
        send(signal.SIGTERM)
        await forever()

    monkeypatch.setattr(StandIn, "start", waits_forever)
    assert run_until(lambda _: None) == 0
    assert StandIn.made.done == ["abandoned"]


def test_a_second_signal_while_it_starts_ends_it(monkeypatch):
    """The first one waits until it is up: its logs are open, and are closed in good order."""

    async def starts_forever(self):
        self.broker = "with logs"
        send(signal.SIGTERM)
        await wait_until(lambda done: self.world.timers.after(0.01, done))
        send(signal.SIGTERM)
        await forever()

    monkeypatch.setattr(StandIn, "start", starts_forever)
    assert run_until(lambda _: None) == STOPPED_AT_ONCE
