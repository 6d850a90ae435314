"""`ottla.metrics.listener`: how it is read, who may read what is there, and what probes are told."""

import asyncio
from base64 import b64encode
from types import SimpleNamespace

import pytest

from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import metrics_of, metrics_url
from ottla.config.parse import ConfigError, parse
from ottla.config.scopes import Scope
from ottla.node.config import read_config
from ottla.node.listeners import MetricsListener
from ottla.node.metrics.metrics_listener import Readers
from ottla.node.metrics.node_health import HUNG_S, DiskAnswer, NodeHealth, write_through
from ottla.runtime.exposition import PageServer, Verdict
from ottla.runtime.network import LoopNetwork
from ottla.runtime.timers import LoopTimers
from ottla.wire.http import HttpRequest

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9100", MetricsListener("127.0.0.1", 9100)),
        ("0.0.0.0:9100", MetricsListener("0.0.0.0", 9100)),
        ("http://metrics.example:0/", MetricsListener("metrics.example", 0)),
        ("https://[::1]:9100", MetricsListener("::1", 9100, has_tls=True)),
        ("", None),
    ],
)
def test_an_address_may_be_given_in_several_ways(text: str, expected: MetricsListener | None) -> None:
    assert read_config({**NODE, "ottla.metrics.listener": text}).metrics == expected


@pytest.mark.parametrize("text", ["somewhere", "ftp://host:1", "host:70000", "://host:1"])
def test_an_address_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"ottla\.metrics\.listener"):
        read_config({**NODE, "ottla.metrics.listener": text})


def test_the_url_is_one_that_can_be_opened() -> None:
    assert MetricsListener("0.0.0.0", 0).url(9100) == "http://127.0.0.1:9100/metrics"
    assert MetricsListener("::1", 0, has_tls=True).url(9100) == "https://[::1]:9100/metrics"


def readers(**given: str) -> Readers:
    settings = {f"ottla.metrics.{name.replace('_', '.')}": text for name, text in given.items()}
    return Readers(parse(Scope.BROKER, {**NODE, **settings}).values)


def showing(authorization: str) -> HttpRequest:
    return HttpRequest("GET", "/metrics", {"authorization": authorization} if authorization else {}, b"")


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


def test_without_logins_and_tokens_everybody_may_read() -> None:
    assert readers().are_all


@pytest.mark.parametrize(
    ("shown", "may"),
    [
        (basic("ann:secret"), True),
        (basic("bob:a:b"), True),
        ("Bearer one-token", True),
        ("bearer  another", True),
        (basic("ann:wrong"), False),
        (basic("ann:"), False),
        ("Basic ???", False),
        ("Bearer ", False),
        ("Bearer one", False),
        ("Digest ann:secret", False),
        ("", False),
    ],
)
def test_a_login_or_a_token_is_needed(shown: str, may: bool) -> None:
    known = readers(basic_auth="ann:secret, bob:a:b", bearer_tokens="one-token,another")
    assert known.may_read(showing(shown)) is may


def test_what_is_no_login_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"ottla\.metrics\.basic\.auth") as refused:
        readers(basic_auth="secret-without-name")
    assert "secret-without-name" not in str(refused.value)


async def ask(server: PageServer, port: int, path: str, header: str = "") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\n{header}\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()


def test_probes_are_answered_to_everybody_with_a_reason_and_metrics_to_who_may_read() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        network, timers = LoopNetwork(loop), LoopTimers(loop)
        known = readers(bearer_tokens="token")
        server = PageServer(
            network,
            timers,
            lambda: ["up 1\n"],
            probes={"/healthz": lambda: Verdict(True, "well"), "/readyz": lambda: Verdict(False, "not ready: fenced")},
            may_read=known.may_read,
            challenges=known.challenges,
        )
        port = server.listen("127.0.0.1", 0)
        assert await ask(server, port, "/healthz") == (200, "well\n")
        assert await ask(server, port, "/readyz") == (503, "not ready: fenced\n")
        assert (await ask(server, port, "/metrics"))[0] == 401
        assert await ask(server, port, "/metrics", "Authorization: Bearer token\r\n") == (200, "up 1\n")
        server.http.close()
        network.close()
        timers.close()

    asyncio.run(main())


def test_a_page_that_fails_is_an_error_and_the_next_one_is_made_again() -> None:
    pages = [["up ", None], ["up 1\n"]]

    def page():
        for piece in pages.pop(0):
            assert piece is not None, "a bug"
            yield piece

    async def main() -> None:
        loop = asyncio.get_running_loop()
        network, timers = LoopNetwork(loop), LoopTimers(loop)
        server = PageServer(network, timers, page)
        port = server.listen("127.0.0.1", 0)
        assert (await ask(server, port, "/metrics"))[0] == 500
        assert await ask(server, port, "/metrics") == (200, "up 1\n")
        server.http.close()
        network.close()
        timers.close()

    asyncio.run(main())


class Disks:
    """A world whose workers answer when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.jobs: list[tuple[object, object]] = []
        self.timers = SimpleNamespace(now_s=lambda: self.now, every=lambda _s, look, first_s: look())
        self.workers = SimpleNamespace(run=lambda _job, then, failed, key: self.jobs.append((then, failed)))


def test_a_disk_that_does_not_answer_is_told_and_one_that_answers_late_is_well_again() -> None:
    world = Disks()
    health = NodeHealth(world, ["/a"])
    health.start()
    world.now = HUNG_S - 1
    assert health.verdict().is_well
    world.now = HUNG_S + 1
    assert health.verdict() == Verdict(False, "the loop turns\n/a: the disk has not answered for 31 s")
    world.jobs[0][0](DiskAnswer(HUNG_S + 1))
    assert health.verdict() == Verdict(True, "the loop turns\n/a: the disk answered within 31000.0 ms")


def test_a_disk_that_answers_with_an_error_answers() -> None:
    world = Disks()
    health = NodeHealth(world, ["/a"])
    health.start()
    world.jobs[0][1](OSError(28, "No space left on device"))
    assert health.verdict() == Verdict(
        True, "the loop turns\n/a: the disk answers with an error: No space left on device"
    )


def test_to_ask_a_disk_leaves_nothing_behind(tmp_path) -> None:
    assert write_through(str(tmp_path)).took_s > 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="No such file"):
        write_through(str(tmp_path / "missing"))


def test_the_nodes_of_a_cluster_have_metrics_at_ports_that_follow(tmp_path) -> None:
    nodes = [NodeFiles(number, tmp_path / f"node-{number}", "") for number in (1, 2, 3)]
    assert [metrics_of(node, "0.0.0.0:9100") for node in nodes] == ["0.0.0.0:9100", "0.0.0.0:9101", "0.0.0.0:9102"]
    assert [metrics_of(node, "0") for node in nodes] == ["0", "0", "0"]
    nodes[0].directory.mkdir()
    assert metrics_url(nodes[0]) is None
    for line in ("  metrics  http://127.0.0.1:9100/metrics\n", '{"metrics": "http://127.0.0.1:9100/metrics"}\n'):
        nodes[0].log.write_text(line)
        assert metrics_url(nodes[0]) == "http://127.0.0.1:9100/metrics"
