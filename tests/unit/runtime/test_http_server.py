"""A server of HTTP on a network in memory: the order of replies, limits, and clients that take their time."""

from ottla.runtime.http.http_server import Caller, HttpLimits, HttpServer, Respond
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryClient, MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.wire.http import HttpRequest, HttpResponse, ResponseReader, response_bytes

GET = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"


class Client:
    def __init__(self, scene: "Scene", end: MemoryClient) -> None:
        self._scene = scene
        self.end = end
        self._reader = ResponseReader(10_000, 1 << 30)

    def send(self, data: bytes) -> None:
        assert self.end.send(data) == len(data), "the pipe is full"
        self._scene.network.run()

    def ask(self, *targets: str) -> None:
        self.send("".join(GET.format(target) for target in targets).encode())

    def replies(self) -> list[HttpResponse]:
        found = []
        while data := self.end.receive():
            found += self._reader.take(data)
            self._scene.network.run()
        return found


class Scene:
    """A server that answers with the target; `/wait…` waits in `waiting`, `/raise` raises."""

    def __init__(self, limits: HttpLimits | None = None, pipe_bytes: int = 64 << 10) -> None:
        self.network = MemoryNetwork(pipe_bytes)
        self.timers = StepTimers(FixedClock())
        self.waiting: list[tuple[HttpRequest, Respond]] = []
        self.callers: list[Caller] = []
        self.server = HttpServer(self.network, self.timers, self._handle, limits)
        self.port = self.server.listen("127.0.0.1", 0)[1]
        self.server.start_accepting()

    def _handle(self, request: HttpRequest, caller: Caller, respond: Respond) -> None:
        self.callers.append(caller)
        if request.target.startswith("/wait"):
            self.waiting.append((request, respond))
        elif request.target == "/raise":
            raise RuntimeError("a bug")
        elif request.target == "/large":
            respond(response_bytes(200, b"x" * 100_000))
        else:
            respond(response_bytes(200, request.target.encode() + request.body))

    def client(self, host: str = "127.0.0.1") -> Client:
        end = self.network.connect("127.0.0.1", self.port, host)
        self.network.run()
        return Client(self, end)

    def advance(self, by_ms: int) -> None:
        self.timers.advance(by_ms)
        self.network.run()


def bodies(client: Client) -> list[bytes]:
    return [reply.body for reply in client.replies()]


def test_replies_come_in_the_order_of_requests() -> None:
    scene = Scene()
    client = scene.client()
    client.ask("/a", "/wait", "/b", "/c")
    assert bodies(client) == [b"/a"], "those behind one that waits wait too"
    assert len(scene.waiting) == 1
    scene.waiting[0][1](response_bytes(200, b"waited"))
    scene.network.run()
    assert bodies(client) == [b"waited", b"/b", b"/c"]
    assert scene.callers[0] == Caller("http", "127.0.0.1", None)


def test_a_reply_counts_once_and_not_after_the_client_has_gone() -> None:
    scene = Scene()
    client = scene.client()
    client.ask("/wait", "/wait2")
    respond = scene.waiting[0][1]
    respond(response_bytes(200, b"first"))
    respond(response_bytes(200, b"again"))
    scene.network.run()
    assert bodies(client) == [b"first"]
    client.end.close()
    scene.network.run()
    scene.waiting[1][1](response_bytes(200, b"late"))
    assert not scene.server.connections


def test_what_raises_costs_its_request_alone() -> None:
    scene = Scene()
    client = scene.client()
    client.ask("/raise", "/a")
    assert [reply.status for reply in client.replies()] == [500, 200]
    assert scene.server.counts["faults"] == 1


def test_a_client_that_sends_ahead_is_not_read_from_for_ever() -> None:
    scene = Scene()
    client = scene.client()
    client.ask("/wait")
    sent = 0
    while sent < 10_000:
        size = client.end.send(GET.format("/a").encode())
        scene.network.run()
        if size < len(GET.format("/a")):
            break
        sent += 1
    assert sent < 10_000, "the pipe has filled up"
    scene.waiting[0][1](response_bytes(200, b""))
    scene.network.run()
    assert len(client.replies()) > 16


def test_a_connection_ends_when_the_client_says_so() -> None:
    scene = Scene()
    client = scene.client()
    client.send(b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    (reply,) = client.replies()
    assert (reply.body, reply.keeps_alive) == (b"/a", False)
    assert client.end.is_closed


def test_what_is_no_request_is_answered_and_closed() -> None:
    scene = Scene()
    client = scene.client()
    client.send(b"hello there\r\n\r\n")
    (reply,) = client.replies()
    assert (reply.status, reply.keeps_alive) == (400, False)
    client.send(b"more of it")
    assert not client.end.is_closed, "it is read and dropped, or the client would not see the reason"
    scene.advance(4_000)
    assert client.end.is_closed


def test_a_client_has_so_long_for_a_request_however_slowly_its_bytes_come() -> None:
    scene = Scene()
    client = scene.client()
    for letter in b"GET /slow":
        client.send(bytes([letter]))
        scene.advance(1_000)
    assert not client.end.is_closed
    scene.advance(3_000)
    assert client.end.is_closed
    assert scene.server.counts["timeouts"] == 1


def test_idle_connections_are_closed_and_waiting_ones_are_not() -> None:
    scene = Scene()
    idle, waiting = scene.client(), scene.client()
    waiting.ask("/wait")
    scene.advance(50_000)
    assert not idle.end.is_closed
    scene.advance(15_000)
    assert idle.end.is_closed
    assert not waiting.end.is_closed, "the reply is ours to give"


def test_a_client_that_takes_no_replies_is_closed() -> None:
    scene = Scene(pipe_bytes=1_000)
    client = scene.client()
    client.ask("/large")
    scene.advance(5_000)
    assert not client.end.is_closed
    scene.advance(10_000)
    assert client.end.is_closed


def test_the_longest_idle_gives_its_place_up() -> None:
    scene = Scene(HttpLimits(connections=2))
    first, second = scene.client(), scene.client()
    scene.advance(500)
    second.ask("/a")
    third = scene.client()
    third.ask("/b")
    assert bodies(third) == [], "nobody has been idle for a second"
    scene.advance(1_000)
    assert bodies(third) == [b"/b"]
    assert (first.end.is_closed, second.end.is_closed) == (True, False)


def test_clients_that_are_slow_with_their_requests_give_their_places_up() -> None:
    scene = Scene(HttpLimits(connections=3))
    slow = [scene.client(f"10.0.0.{number // 2}") for number in range(3)]
    for client in slow:
        client.send(b"GET /never HTTP/1.1\r\n")
    scraper = scene.client("10.0.0.9")
    scraper.ask("/metrics")
    scene.advance(900)
    slow[0].send(b"X-Still: here\r\n")
    assert bodies(scraper) == [], "each has a second for its request"
    scene.advance(100)
    assert bodies(scraper) == [b"/metrics"]
    assert [client.end.is_closed for client in slow] == [True, False, False], "the oldest of the address with most"
    assert scene.server.counts["slow_closed"] == 1


def test_clients_that_are_slow_with_their_replies_give_their_places_up_after_idle_ones() -> None:
    scene = Scene(HttpLimits(connections=2), pipe_bytes=1_000)
    slow = scene.client()
    slow.ask("/large")
    scene.advance(500)
    idle = scene.client()
    scene.advance(1_000)
    slow.end.receive()
    scene.network.run()
    third = scene.client()
    third.ask("/wait")
    assert (slow.end.is_closed, idle.end.is_closed) == (False, True)
    fourth = scene.client()
    fourth.ask("/b")
    assert slow.end.is_closed, "although it has taken a little of its reply"
    assert bodies(fourth) == [b"/b"]
    scene.client()
    scene.advance(500)
    assert not third.end.is_closed, "it waits for us"


def test_an_address_has_only_so_many_connections() -> None:
    scene = Scene(HttpLimits(connections_per_address=1))
    first, second, other = scene.client(), scene.client(), scene.client("10.0.0.1")
    assert (first.end.is_closed, second.end.is_closed, other.end.is_closed) == (False, True, False)
    first.end.close()
    scene.network.run()
    assert not scene.client().end.is_closed


def test_a_client_that_waits_with_its_body_is_told_to_send_it() -> None:
    scene = Scene()
    client = scene.client()
    client.send(b"POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    assert client.end.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"!")
    assert bodies(client) == [b"/a!"]


def test_a_server_that_stops_gives_the_replies_that_it_owes() -> None:
    scene = Scene()
    idle, waiting = scene.client(), scene.client()
    waiting.ask("/wait")
    scene.server.stop_listening()
    assert not scene.server.drain()
    assert idle.end.is_closed
    scene.waiting[0][1](response_bytes(200, b"done"))
    scene.network.run()
    (reply,) = waiting.replies()
    assert (reply.body, reply.keeps_alive) == (b"done", False)
    assert scene.server.drain()


def test_replies_that_a_client_does_not_take_are_not_made() -> None:
    """A few kilobytes of requests may ask for gigabytes."""
    scene = Scene()
    client = scene.client()
    client.ask(*["/large"] * 200)
    assert len(scene.callers) < 20, "a megabyte is made ahead"
    assert [len(reply.body) for reply in client.replies()] == [100_000] * 200
    client.ask("/a")
    assert bodies(client) == [b"/a"]
