"""The network of a simulation: bytes keep their order, whatever happens to the links they go over."""

from random import Random

import pytest

from ottla.base.ports import Transport
from ottla.testing.clock import FixedClock
from ottla.testing.sim.hosts.process import Process
from ottla.testing.sim.network.connection_end import WINDOW_BYTES, ConnectionEnd
from ottla.testing.sim.network.fabric import Fabric
from ottla.testing.sim.network.host_network import HostListener, HostNetwork
from ottla.testing.sim.network.passing_frames import Repeating
from ottla.testing.step_timers import Agenda

SECOND_US = 1_000_000


class Reader:
    """Reads all that comes at one end; accepts, if it is a listener's."""

    def __init__(self) -> None:
        self.ends: list[ConnectionEnd] = []
        self.listener: HostListener | None = None
        self.received = b""
        self.has_ended = False
        self.problem: OSError | None = None

    def attend(self, end: ConnectionEnd) -> None:
        self.ends.append(end)
        end.watch(self, reading=True, writing=False)

    def on_readable(self) -> None:
        if self.listener is not None and self.listener.is_readable:
            self.attend(self.listener.accept())
        for end in list(self.ends):
            self._read(end)

    def _read(self, end: ConnectionEnd) -> None:
        buffer = bytearray(1000)
        try:
            count = end.receive_into(buffer)
        except BlockingIOError:
            return
        except OSError as problem:
            self.problem = problem
            count = 0
        self.received += buffer[:count]
        if not count:
            self.has_ended = True
            self.ends.remove(end)
            end.close()

    def on_writable(self) -> None: ...


class Scene:
    def __init__(self, seed: int = 0) -> None:
        self.agenda = Agenda(FixedClock())
        self.fabric = Fabric(self.agenda, Random(seed))
        self.near, self.far = (self.process(f"10.0.0.{number}") for number in (1, 2))
        self.server, self.client = Reader(), Reader()
        self.listener = self.far.listen("", 9092, backlog=5, receive_buffer_bytes=-1, send_buffer_bytes=-1)
        self.server.listener = self.listener
        self.listener.watch(self.server)
        self.failure: OSError | None = None

    def process(self, address: str) -> HostNetwork:
        return HostNetwork(self.fabric, self.fabric.add_host(address), Process(self.agenda))

    def dial(self, port: int = 9092, address: str = "10.0.0.2") -> None:
        def then(transport: Transport) -> None:
            assert isinstance(transport, ConnectionEnd)
            self.client.attend(transport)

        def failed(problem: OSError) -> None:
            self.failure = problem

        self.near.dial(address, port, receive_buffer_bytes=-1, send_buffer_bytes=-1, then=then, failed=failed)

    def connected(self) -> ConnectionEnd:
        self.dial()
        self.run(10_000)
        return self.client.ends[0]

    def run(self, by_us: int) -> None:
        self.agenda.run_until(self.agenda.clock.elapsed_us() + by_us)


def test_what_is_sent_arrives_in_order_after_a_while():
    scene = Scene()
    end = scene.connected()
    for number in range(100):
        end.send(b"%d " % number)
    assert scene.server.received == b""
    scene.run(SECOND_US)
    assert scene.server.received == b"".join(b"%d " % number for number in range(100))


def test_an_end_that_is_not_read_takes_a_window_and_no_more():
    scene = Scene()
    end = scene.connected()
    scene.server.ends[0].watch(None, reading=False, writing=False)
    assert end.send(bytes(2 * WINDOW_BYTES)) == WINDOW_BYTES
    with pytest.raises(BlockingIOError):
        end.send(b"more")
    scene.server.ends[0].watch(scene.server, reading=True, writing=False)
    scene.run(SECOND_US)
    assert end.send(b"more") == 4


def test_a_link_that_repeats_sends_whole_frames_twice_though_the_window_is_full():
    scene = Scene()
    end = scene.connected()
    frame = (WINDOW_BYTES - 4).to_bytes(4, "big") + b"x" * (WINDOW_BYTES - 4)
    end.link.repeating = Repeating(Random(1), replies=0.0, requests=1.0)
    assert end.send(frame[:-1]) == WINDOW_BYTES - 1
    assert end.send(frame[-1:]) == 1
    end.link.repeating = None
    with pytest.raises(BlockingIOError):
        end.send(b"more")
    for _ in range(2 * WINDOW_BYTES // 1000 + 2):
        scene.run(SECOND_US)
    assert scene.server.received == 2 * frame
    assert end.send(b"more") == 4


def test_an_end_that_is_closed_ends_behind_what_was_sent():
    scene = Scene()
    end = scene.connected()
    end.send(b"last words")
    end.close()
    scene.run(SECOND_US)
    assert (scene.server.received, scene.server.has_ended) == (b"last words", True)


def test_nobody_who_listens_refuses_and_nobody_at_all_is_out_of_reach():
    scene = Scene()
    scene.dial(port=1)
    scene.run(SECOND_US)
    assert isinstance(scene.failure, ConnectionRefusedError)
    scene.dial(address="10.9.9.9")
    scene.run(5 * SECOND_US)
    assert "no host" in str(scene.failure)


def test_behind_a_cut_link_bytes_arrive_when_it_is_mended():
    scene = Scene()
    end = scene.connected()
    (there,) = scene.fabric.links_between([scene.near.host], [scene.far.host])
    there.cut()
    end.send(b"held up")
    scene.server.ends[0].send(b"the other way is open")
    scene.run(60 * SECOND_US)
    assert (scene.server.received, scene.client.received) == (b"", b"the other way is open")
    there.mend()
    scene.run(3 * SECOND_US)
    assert scene.server.received == b"held up"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cut_again_after_us", [None, 1])
def test_what_is_sent_after_a_link_is_mended_does_not_overtake_what_was_held_up(
    seed: int, cut_again_after_us: int | None
) -> None:
    scene = Scene(seed)
    end = scene.connected()
    (there,) = scene.fabric.links_between([scene.near.host], [scene.far.host])
    there.cut()
    end.send(b"first, ")
    there.mend()
    end.send(b"second, ")
    if cut_again_after_us is not None:
        scene.run(cut_again_after_us)
        there.cut()
        end.send(b"third, ")
        scene.run(3 * SECOND_US)
        there.mend()
    end.send(b"last")
    end.close()
    scene.run(6 * SECOND_US)
    third = b"" if cut_again_after_us is None else b"third, "
    assert (scene.server.received, scene.server.has_ended) == (b"first, second, " + third + b"last", True)


def test_dialing_a_machine_without_power_takes_two_minutes_to_fail_or_until_it_is_back():
    scene = Scene()
    scene.far.host.power_off()
    scene.dial()
    scene.run(60 * SECOND_US)
    assert scene.failure is None
    scene.run(67 * SECOND_US)
    assert isinstance(scene.failure, TimeoutError)
    scene.dial()
    scene.run(5 * SECOND_US)
    scene.far.host.power_on()
    scene.run(30 * SECOND_US)
    assert len(scene.client.ends) == 1


@pytest.mark.parametrize("resets", [True, False])
def test_a_process_that_dies_is_found_out_at_once(resets: bool):
    scene = Scene()
    scene.connected()
    scene.far.end(resets=resets)
    scene.run(SECOND_US)
    assert scene.client.has_ended
    assert (scene.client.problem is not None) is resets


def test_a_machine_that_loses_its_power_is_found_out_only_by_sending_to_it_when_it_is_back():
    scene = Scene()
    end = scene.connected()
    scene.far.vanish()
    scene.far.host.power_off()
    end.send(b"hello?")
    scene.run(600 * SECOND_US)
    assert not scene.client.has_ended
    scene.far.host.power_on()
    scene.run(SECOND_US)
    assert isinstance(scene.client.problem, ConnectionResetError)


def test_a_reset_loses_what_is_under_way_at_both_ends():
    scene = Scene()
    end = scene.connected()
    end.send(b"lost")
    end.reset()
    scene.run(SECOND_US)
    assert scene.server.received == b""
    assert scene.server.problem is not None
    assert scene.client.problem is not None


def test_a_stopped_process_reads_when_it_goes_on():
    scene = Scene()
    end = scene.connected()
    scene.far.process.stop()
    end.send(b"are you there")
    scene.run(10 * SECOND_US)
    assert scene.server.received == b""
    scene.far.process.resume()
    scene.run(SECOND_US)
    assert scene.server.received == b"are you there"
