"""Connecting by TLS: to whom it was meant to be, or a failure that says why."""

from collections.abc import Callable

import pytest

from ottla.base.ports import Transport
from ottla.runtime.tls.handshake_lane import HandshakeLane
from ottla.runtime.tls.tls_listener import TlsListener
from ottla.runtime.tls.trust import ListenerTrust
from ottla.security.tls.contexts import client_context
from ottla.security.tls.dialling import TlsDialer, TlsDialling
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import StepTimers
from tests.unit.security.tls import trial_certificates as trial

HOST = "localhost"


class Scene:
    """A node that listens with TLS, and one that dials it."""

    def __init__(self, shown: trial.Issued) -> None:
        self.network = MemoryNetwork()
        timers = StepTimers(FixedClock())
        inner = self.network.listen(HOST, 9093, backlog=50, receive_buffer_bytes=-1, send_buffer_bytes=-1)
        trust = ListenerTrust(trial.inline(shown, trial.authority()))
        lane = HandshakeLane(self.network, timers.now_s)
        self.listener = TlsListener(inner, "TLS", trust, lane, self.network, timers, lambda _: None, self)
        self.listener.watch(self)
        self.accepted: list[Transport] = []
        self.connected: list[Transport] = []
        self.failed: list[OSError] = []
        self.told: list[tuple[str, str]] = []
        self.suites: frozenset[str] | None = None
        context = client_context(trial.inline(None, trial.authority()))
        self.dialer = TlsDialer(
            self.network,
            lambda: context,
            self.network.at_end_of_turn,
            lambda: self.suites,
            heard=lambda address, problem: self.told.append((address, str(problem))),
        )

    def arrive(self, transport: Transport, then: Callable[[Transport], None], _resume: Callable[[], None]) -> bool:
        then(transport)
        return True

    def gone(self, host: str) -> None:
        """Nobody counts."""

    def on_readable(self) -> None:
        self.accepted.append(self.listener.accept())

    def on_writable(self) -> None:
        raise AssertionError("a listener is not written to")

    def dial(self, port: int = 9093) -> TlsDialling:
        return self.dialer.dial(
            HOST,
            port,
            receive_buffer_bytes=-1,
            send_buffer_bytes=-1,
            then=self.connected.append,
            failed=self.failed.append,
        )


def test_bytes_go_both_ways_when_the_certificate_is_right() -> None:
    scene = Scene(trial.node())
    scene.dial()
    scene.network.run()
    assert (len(scene.connected), len(scene.accepted)) == (1, 1)
    scene.connected[0].send(b"hello")
    buffer = bytearray(100)
    assert scene.accepted[0].receive_into(buffer) == 5
    scene.accepted[0].send(b"yes?")
    assert scene.connected[0].receive_into(buffer) == 4
    assert bytes(buffer[:4]) == b"yes?"


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (trial.elsewhere(), "Hostname mismatch, certificate is not valid for 'localhost'"),
        (trial.expired(), "certificate has expired"),
        (trial.impostor(), "unable to get local issuer certificate"),
    ],
)
def test_who_is_not_believed_is_a_failure_that_says_why(shown: trial.Issued, reason: str) -> None:
    scene = Scene(shown)
    scene.dial()
    scene.network.run()
    assert scene.connected == scene.accepted == []
    assert [str(problem) for problem in scene.failed] == [
        f"the certificate of the other side is not accepted: {reason}"
    ]
    assert scene.told == [("localhost:9093", str(scene.failed[0]))]


def test_cipher_suites_that_change_count_from_the_next_connection_on() -> None:
    scene = Scene(trial.node())
    scene.dial()
    scene.network.run()
    assert len(scene.connected) == 1
    scene.suites = frozenset({"TLS_NOBODY_HAS_THIS"})
    scene.dial()
    scene.network.run()
    assert len(scene.connected) == 1
    [problem] = scene.failed
    assert "which ssl.cipher.suites does not have" in str(problem)


def test_nobody_there_is_a_failure_without_a_handshake() -> None:
    scene = Scene(trial.node())
    scene.dial(9999)
    scene.network.run()
    assert len(scene.failed) == 1
    assert scene.told == []


def test_a_dialling_that_is_cancelled_says_nothing_more() -> None:
    scene = Scene(trial.node())
    early = scene.dial()
    early.cancel()
    late = scene.dial()
    scene.network.turn()
    late.cancel()
    scene.network.run()
    assert scene.connected == scene.failed == []
