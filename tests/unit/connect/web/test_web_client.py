"""The client below all HTTP connectors: where it never connects, and what hostile servers cannot do to it."""

import socket
from collections.abc import Iterator
from logging import getLogger
from random import Random
from typing import Any

import pytest

from ottla.connect.connectors.s3 import S3Access
from ottla.connect.connectors.web import addresses, client
from ottla.connect.connectors.web.addresses import AddressRefused, check_address
from ottla.connect.connectors.web.client import (
    Limits,
    Patience,
    Request,
    TooLong,
    WebClient,
    parse_url,
    patiently,
    retry_after_s,
)
from ottla.connect.connectors.web.options import basic
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.unit.connect.web.servers import Answer, Asked, RawServer, WebServer


@pytest.fixture
def web() -> Iterator[WebClient]:
    made = WebClient(Limits(connect_s=5, request_s=5, reply_bytes=1000))
    yield made
    made.close()


def get(url: str, **more: Any) -> Request:
    return Request("GET", parse_url(url, "http.url"), **more)


METADATA = [
    "169.254.169.254",
    "169.254.0.1",
    "fe80::1",
    "fe80::1%lo",
    "febf::1",
    "fd00:ec2::254",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1:2::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "100.100.100.200",
]


@pytest.mark.parametrize("address", METADATA)
def test_link_local_and_metadata_addresses_are_refused_in_every_form(address: str) -> None:
    with pytest.raises(AddressRefused, match="link-local or metadata"):
        check_address(address, address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "169.253.255.255", "fd00::1", "::ffff:10.0.0.1"])
def test_other_addresses_are_not(address: str) -> None:
    check_address(address, address)


@pytest.mark.parametrize("host", ["169.254.169.254", "0xa9fea9fe", "2852039166", "[fe80::1]", "[::ffff:169.254.1.1]"])
def test_an_address_is_refused_however_it_is_written(web: WebClient, host: str) -> None:
    with pytest.raises((AddressRefused, Retriable)) as refused:
        web.ask(get(f"http://{host}/latest/meta-data"))
    assert isinstance(refused.value, AddressRefused), refused.value


def test_a_name_that_resolves_there_is_refused_before_anything_is_sent(
    web: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it resolves to another address as well, and whatever it resolved to before."""
    answers = [["127.0.0.1"], ["127.0.0.1", "169.254.169.254"]]
    asked: list[str] = []

    def resolved(host: str, port: int, **_: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in answers[len(asked) - 1]]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", resolved)
    with WebServer(lambda _: Answer(200, b"ok", {"Connection": "close"})) as server:
        # The stand-in refuses a Host that is not its own: that it says so shows that it was asked.
        assert web.ask(get(f"http://rebound.example:{server.port}/")).status == 421
        web.close()
        with pytest.raises(AddressRefused, match=r"rebound.example is 169.254.169.254"):
            web.ask(get(f"http://rebound.example:{server.port}/"))
        assert server.connections == 1


def test_the_address_that_was_connected_to_is_looked_at(web: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "getpeername", lambda _: ("169.254.169.254", 80))
    with WebServer(lambda _: Answer()) as server, pytest.raises(AddressRefused):
        web.ask(get(server.url))


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "//fe80%2e/"]
)
def test_a_redirect_leads_to_no_such_address(web: WebClient, location: str) -> None:
    with WebServer(lambda _: Answer(302, b"", {"Location": location})) as server:
        with pytest.raises(ConnectError) as refused:
            web.ask(get(server.url))
        assert len(server.asked) == 1
    assert isinstance(refused.value, AddressRefused) or "fe80" in location


def test_redirects_are_followed_and_bounded_and_another_origin_gets_no_credentials(web: WebClient) -> None:
    with WebServer(lambda _: Answer(200, b"there")) as target:

        def answer(asked: Asked) -> Answer:
            if asked.path == "/near":
                return Answer(307, b"", {"Location": "/far"})
            if asked.path == "/far":
                return Answer(308, b"", {"Location": f"{target.url}/end"})
            return Answer(307, b"", {"Location": "/loop"})

        with WebServer(answer) as server:
            url, own = parse_url(f"{server.url}/near", "u"), {"Authorization": "Bearer x", "X-Key": "y"}
            reply = web.ask(Request("POST", url, b"body", {"Content-Type": "text/plain"}, own))
            assert (reply.status, reply.body) == (200, b"there")
            near, far = server.asked
            assert near.headers["authorization"] == far.headers["authorization"] == "Bearer x"
            (end,) = target.asked
            assert (end.method, end.path, end.body) == ("POST", "/end", b"body")
            assert "authorization" not in end.headers
            assert "x-key" not in end.headers
            with pytest.raises(ConnectError, match="redirects more than 5 times"):
                web.ask(get(f"{server.url}/loop"))
            assert len(server.asked) == 2 + 6


def test_a_redirect_that_would_lose_the_body_is_refused(web: WebClient) -> None:
    said = r"answers a POST with a redirect \(302\)"
    with (
        WebServer(lambda _: Answer(302, b"", {"Location": "/login"})) as server,
        pytest.raises(ConnectError, match=said),
    ):
        web.ask(Request("POST", parse_url(server.url, "u"), b"records"))


def test_a_connection_is_kept_and_replaced_when_the_server_has_closed_it(web: WebClient) -> None:
    with WebServer(lambda _: Answer(200, b"ok")) as server:
        for _ in range(3):
            assert web.ask(get(server.url)).body == b"ok"
        assert server.connections == 1
        (kept,) = web._kept.values()
        kept.sock._plain.shutdown(socket.SHUT_RDWR)  # as if the server had closed it meanwhile
        assert web.ask(get(server.url)).body == b"ok"
        assert server.connections == 2


HOSTILE = {
    "nothing": (b"", "closed the connection"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.9\r\n", "no reply"),
    "half a header": (b"HTTP/1.1 200 OK\r\nContent-Le", "ends too early|no reply"),
    "half a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "ends too early"),
    "half a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nhalf", "ends too early"),
    "no chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf", "ends too early"),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "no reply"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, "no reply"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_reply_that_is_none_may_be_asked_for_again(web: WebClient, case: str) -> None:
    said, expected = HOSTILE[case]
    with RawServer(said) as server, pytest.raises(Retriable, match=expected):
        web.ask(get(server.url))


def test_a_huge_reply_is_refused_or_cut_without_reading_it_all(web: WebClient) -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 100_000
    with RawServer(endless, stays=True) as server:
        with pytest.raises(TooLong, match="more than 1000 bytes"):
            web.ask(get(server.url))
        assert web.ask(get(server.url, cuts_reply=True)).body == b"x" * 1000


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nX: y\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_server_that_falls_silent_is_given_up(said: bytes) -> None:
    web = WebClient(Limits(connect_s=5, request_s=0.2))
    with RawServer(said, stays=True) as server, pytest.raises(Retriable, match="in time"):
        web.ask(get(server.url))


def test_a_server_that_drips_is_given_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, but all of them do not."""
    web = WebClient(Limits(connect_s=5, request_s=1000))
    now_s = [0.0]

    def later() -> float:
        now_s[0] += 20
        return now_s[0]

    drip = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000
    monkeypatch.setattr(client, "monotonic", later)
    with RawServer(drip, stays=True) as server, pytest.raises(Retriable, match="in time"):
        web.ask(get(server.url, cuts_reply=True))


def test_what_is_put_off_is_tried_again_after_the_servers_own_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(client, "sleep", pauses.append)
    answers = [Answer(429, b"", {"Retry-After": "7"}), Answer(503), Answer(408), Answer(200, b"ok")]
    web = WebClient(Limits())
    with WebServer(lambda _: answers.pop(0)) as server:
        reply = patiently(web, [get(server.url)], Patience(5, 0.5), getLogger("test"))
    assert reply.body == b"ok"
    assert pauses[0] == 7
    assert len(pauses) == 3
    assert 0.5 <= pauses[1] <= 2
    answers = [Answer(503, b"overloaded")] * 3
    with WebServer(lambda _: answers.pop(0)) as server, pytest.raises(Retriable, match="answered 503: overloaded"):
        patiently(web, [get(server.url)], Patience(2, 0.5), getLogger("test"))
    assert answers == []


def test_retry_after_is_seconds_or_a_date_and_never_forever() -> None:
    assert retry_after_s("120", 0) == 120
    assert retry_after_s("Thu, 01 Jan 1970 00:02:00 GMT", 100) == 20
    assert retry_after_s("Thu, 01 Jan 1970 00:00:00 GMT", 100) == 0
    assert retry_after_s("9" * 400, 0) == 300
    for nothing in ("", "-5", "soon", "1.5", "١٢"):
        assert retry_after_s(nothing, 0) is None


def test_the_next_server_is_asked_when_one_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "sleep", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with WebServer(lambda _: Answer(200, b"second")) as server:
        requests = [get(away), get(server.url)]
        assert patiently(WebClient(Limits()), requests, Patience(), getLogger("test")).body == b"second"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host/", "must be http"),
        ("http:///path", "must be http"),
        ("file:///etc/passwd", "must be http"),
        ("http://host:99999/", "u:"),
        ("http://host/a b", "blank"),
        ("http://host/\r\nX: y", "blank"),
        ("http://user:secret@host/", "credentials"),
    ],
)
def test_an_address_that_is_none_is_refused_by_its_setting(url: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=said) as refused:
        parse_url(url, "u")
    assert str(refused.value).startswith("u")
    assert "secret" not in str(refused.value)


ECHOES = ["Bearer s3cret-token", "your token s3cret-token", " " * 250 + "x" * 290 + " s3cret-token"]


@pytest.mark.parametrize("said", ECHOES)
def test_a_server_that_repeats_the_credentials_finds_them_in_no_message_and_no_log(
    web: WebClient, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client, "sleep", lambda _: None)
    own = {"Authorization": "Bearer s3cret-token"}
    with (
        WebServer(lambda _: Answer(503, said.encode())) as server,
        pytest.raises(Retriable, match="answered 503") as failed,
    ):
        patiently(web, [get(server.url, own_headers=own)], Patience(1, 0.5), getLogger("test"))
    assert "s3c" not in str(failed.value) + caplog.text
    assert len(caplog.records) == 1


def test_a_password_is_hidden_too_and_what_is_no_reply_is_short_and_printable(web: WebClient) -> None:
    own = {"Authorization": basic("me", "s3cret-word", "user")}
    with WebServer(lambda _: Answer(422, b"no s3cret-word for me")) as server:
        reply = web.ask(get(server.url, own_headers=own))
    assert reply.shown().endswith("answered 422: no [hidden] for me")
    assert "s3c" not in repr(reply) + repr(get(server.url, own_headers=own))
    with RawServer(b"\x1b[2Js3cret-word" + b"x" * 5_000 + b"\r\n\r\n") as raw, pytest.raises(Retriable) as failed:
        web.ask(get(raw.url, own_headers=own))
    assert "s3c" not in str(failed.value)
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) < 400


def test_any_retry_after_is_a_pause_or_none() -> None:
    random = Random(7)
    for _ in range(3_000):
        text = "".join(random.choices("0123456789 :,-+GMTJan;()", k=random.randrange(1, 30)))
        pause_s = retry_after_s(text, 1_000.0)
        assert pause_s is None or 0 <= pause_s <= 300


@pytest.mark.parametrize("address", ["http://169.254.169.254", "http://[fe80::1]:80", "https://[::ffff:169.254.1.1]"])
def test_s3_is_no_such_address_either(address: str) -> None:
    """pyarrow and deltalake connect by themselves: the address is looked at before they are given it."""
    access = S3Access("us-east-1", address, "key", "secret", None)
    for use in (access.file_system, access.for_delta):
        with pytest.raises(AddressRefused, match="link-local or metadata"):
            use()
