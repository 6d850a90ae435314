"""Clients that do not finish their handshake take nothing from those that do, and each gets one line in the log."""

import logging
import ssl
from collections.abc import Callable
from contextlib import suppress

import pytest

from ottla.base.ports import Transport
from ottla.runtime.tls.handshake_lane import HandshakeLane
from ottla.runtime.tls.tls_listener import HANDSHAKE_S, MOST_HALF_OPEN, TlsListener
from ottla.runtime.tls.trust import ListenerTrust
from ottla.security.tls.contexts import client_context
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryClient, MemoryNetwork
from ottla.testing.step_timers import StepTimers
from tests.unit.security.tls import trial_certificates as trial

NODE = trial.inline(trial.node(), trial.authority())


class Client:
    """One that speaks TLS, or begins to."""

    def __init__(self, end: MemoryClient, shown: trial.Issued | None = None) -> None:
        self._end = end
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(trial.inline(shown, trial.authority()))
        self.tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self.is_up = False

    def step(self) -> None:
        self._in.write(self._end.receive())
        if not self.is_up:
            try:
                self.tls.do_handshake()
                self.is_up = True
            except ssl.SSLWantReadError:
                pass
        self._end.send(self._out.read())


class AnyNumber:
    """Whoever arrives may stay."""

    def arrive(self, transport: Transport, then: Callable[[Transport], None], _resume: Callable[[], None]) -> bool:
        then(transport)
        return True

    def gone(self, host: str) -> None:
        """Nobody counts."""


class Scene:
    def __init__(self, **settings: str) -> None:
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.network = MemoryNetwork()
        inner = self.network.listen("127.0.0.1", 9093, backlog=50, receive_buffer_bytes=-1, send_buffer_bytes=-1)
        self.trust = ListenerTrust({**NODE, **{key.replace("_", "."): text for key, text in settings.items()}})
        self.refused: list[str] = []
        lane = HandshakeLane(self.network, self.timers.now_s)
        self.listener = TlsListener(
            inner, "TLS", self.trust, lane, self.network, self.timers, self.refused.append, AnyNumber()
        )
        self.accepted: list[Transport] = []
        self.accepts = True
        self.listener.watch(self)

    def on_readable(self) -> None:
        while self.accepts:
            try:
                self.accepted.append(self.listener.accept())
            except BlockingIOError:
                return

    def on_writable(self) -> None:
        raise AssertionError("a listener is not written to")

    def connect(self, host: str = "10.0.0.1") -> MemoryClient:
        end = self.network.connect("127.0.0.1", 9093, host)
        self.network.run()
        return end

    def come_up(self, host: str = "10.0.0.2", shown: trial.Issued | None = None) -> Client:
        client = Client(self.connect(host), shown)
        for _ in range(4):
            with suppress(BrokenPipeError):  # if the node has hung up
                client.step()
            self.network.run()
        return client


def test_a_client_is_accepted_when_its_handshake_is_over() -> None:
    scene = Scene()
    end = scene.connect()
    assert scene.accepted == []
    client = Client(end)
    client.step()
    scene.network.run()
    assert scene.accepted == []
    client.step()
    scene.network.run()
    assert [one.peer_host for one in scene.accepted] == ["10.0.0.1"]
    assert scene.accepted[0].peer_principal == "User:ANONYMOUS"


@pytest.mark.parametrize(("rules", "principal"), [("DEFAULT", "User:CN=alice"), ("RULE:^CN=(.*)$/$1/U", "User:ALICE")])
def test_a_certificate_says_who_the_client_is(rules: str, principal: str) -> None:
    scene = Scene(ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    scene.come_up(shown=trial.client())
    assert [one.peer_principal for one in scene.accepted] == [principal]


def test_a_session_of_tls_1_2_with_a_certificate_is_resumed_for_a_minute_at_most() -> None:
    """A certificate that has expired, or is trusted no more, must not live on in a session for hours."""
    scene = Scene(ssl_client_auth="required")
    shown = trial.inline(trial.client(), trial.authority())
    context = client_context({**shown, "ssl.enabled.protocols": "TLSv1.2"})

    def shake(session: ssl.SSLSession | None) -> ssl.SSLObject:
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
        server = scene.trust.server_at(scene.timers.now_s()).wrap_bio(to_server, to_client, server_side=True)
        for _ in range(4):
            for end in (client, server):
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        assert server.getpeercert(binary_form=True) is not None
        return client

    session = shake(None).session
    assert shake(session).session_reused
    scene.timers.advance(60_000)
    assert not shake(session).session_reused


def test_a_name_that_no_rule_matches_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^OU=(.*)$/$1/")
    scene.come_up(shown=trial.client())
    assert scene.accepted == []
    assert "no rule of ssl.principal.mapping.rules matches 'CN=alice'" in caplog.text


def test_a_client_that_says_nothing_is_gone_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    end = scene.connect()
    scene.timers.advance(int(HANDSHAKE_S * 1000) - 1)
    assert not end.is_closed
    scene.timers.advance(1)
    assert end.is_closed
    assert scene.refused == ["TLS handshake"]
    assert "closed the connection of 10.0.0.1 (TLS): the TLS handshake was not over after 10 s" in caplog.text


def test_one_that_drips_is_gone_then_too() -> None:
    scene = Scene()
    end = scene.connect()
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
    for at in range(int(HANDSHAKE_S)):
        end.send(hello[at : at + 1])
        scene.network.run()
        scene.timers.advance(1_000)
    assert end.is_closed


def test_half_open_handshakes_do_not_keep_a_client_out() -> None:
    scene = Scene()
    silent = [scene.connect() for _ in range(MOST_HALF_OPEN)]
    waiting = Client(scene.connect("10.0.0.2"))
    assert not any(end.is_closed for end in silent), "they have a second"
    scene.timers.advance(1_000)
    scene.network.run()
    for _ in range(4):
        waiting.step()
        scene.network.run()
    assert [one.peer_host for one in scene.accepted] == ["10.0.0.2"]
    assert [end.is_closed for end in silent].count(True) == 1
    assert silent[0].is_closed


def test_the_address_with_most_of_them_loses_its_oldest() -> None:
    scene = Scene()
    one = scene.connect("10.0.0.9")
    many = [scene.connect("10.0.0.1") for _ in range(MOST_HALF_OPEN - 1)]
    scene.timers.advance(2_000)
    scene.come_up("10.0.0.2")
    assert len(scene.accepted) == 1
    assert not one.is_closed
    assert many[0].is_closed


def test_clients_that_wait_for_the_server_are_bounded_too() -> None:
    scene = Scene()
    scene.accepts = False
    ready = [scene.come_up() for _ in range(3)]
    assert all(client.is_up for client in ready)
    assert scene.accepted == []
    scene.accepts = True
    scene.listener.watch(None)
    scene.network.run()
    assert scene.accepted == []
    scene.listener.watch(scene)
    scene.network.run()
    assert len(scene.accepted) == 3


def test_plain_text_gets_one_line_that_says_so(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    end = scene.connect()
    end.send(b"\x00\x00\x00\x23\x00\x12\x00\x04")
    scene.network.run()
    assert end.receive() == b"\x15\x03\x03\x00\x02\x02\x0a", "an alert, by which clients know what is spoken here"
    assert end.is_closed
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "does not speak TLS" in lines[0].message


def test_a_flood_of_them_gets_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    for _ in range(50):
        scene.connect().send(b"GET / HTTP/1.1\r\n\r\n")
        scene.network.run()
    assert len(scene.refused) == 50
    assert len(caplog.records) == 10
    scene.timers.advance(10_000)
    scene.connect().send(b"GET / HTTP/1.1\r\n\r\n")
    scene.network.run()
    assert [record.message for record in caplog.records][10:11] == ["suppressed 40 more lines like these"]


def test_closing_closes_them_all() -> None:
    scene = Scene()
    scene.accepts = False
    half_open = scene.connect()
    scene.come_up()
    scene.listener.close()
    assert half_open.is_closed
    scene.timers.advance(20_000)
    assert scene.refused == []


def test_handshakes_give_way_to_others_after_a_moment() -> None:
    network = MemoryNetwork()
    done: list[str] = []
    now_s = 0.0

    def work() -> None:
        nonlocal now_s
        now_s += 0.0015
        done.append("handshake")

    lane = HandshakeLane(network, lambda: now_s)
    for _ in range(4):
        lane.add(work)
    network.at_end_of_turn(lambda: done.append("other"))
    network.run()
    assert done == ["handshake", "handshake", "other", "handshake", "handshake"]
