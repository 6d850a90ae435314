"""HTTP without I/O: what is a message, what is refused, and what is bounded."""

import pytest

from ottla.wire.http import (
    BadHttp,
    HttpRequest,
    RequestReader,
    ResponseReader,
    closing,
    request_bytes,
    response_bytes,
)

PLAIN = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: one\r\naccept: two\r\n\r\n"
POST = b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
UPGRADE = (
    b"POST /b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    b"Content-Length: 3\r\n\r\nabc"
)


def reader() -> RequestReader:
    return RequestReader(most_head=1000, most_body=100)


def test_requests_come_whole_in_any_division_of_their_bytes() -> None:
    data = PLAIN + POST + PLAIN
    whole = reader().take(data)
    assert [request.target for request in whole] == ["/a?b=c", "/b", "/a?b=c"]
    assert whole[0] == HttpRequest("GET", "/a?b=c", {"host": "x", "accept": "one, two"}, b"")
    assert (whole[0].path, whole[1].body) == ("/a", b"abc")
    for size in (1, 2, 7, 50):
        one = reader()
        found = [request for at in range(0, len(data), size) for request in one.take(data[at : at + size])]
        assert found == whole
        assert not one.has_begun


def test_a_request_that_has_begun_is_told() -> None:
    one = reader()
    assert not one.has_begun
    one.take(PLAIN[:5])
    assert one.has_begun
    one.take(PLAIN[5:])
    assert not one.has_begun
    one.take(POST[:-1])
    assert one.has_begun


def test_an_offer_to_change_the_protocol_is_passed_over() -> None:
    requests = reader().take(UPGRADE + PLAIN)
    assert [(request.method, request.body) for request in requests] == [("POST", b"abc"), ("GET", b"")]
    assert all(request.keeps_alive for request in requests)
    one = reader()
    assert [one.take(UPGRADE[at : at + 1]) for at in range(len(UPGRADE))][-1] == requests[:1]


def test_chunks_are_put_together() -> None:
    chunked = b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    assert reader().take(chunked)[0].body == b"abc"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + b"a" * 255, 413),
        (b"GET /" + b"a" * 2000, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 2000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: 1\r\n" % n for n in range(101)) + b"\r\n", 431),
    ],
)
def test_what_is_no_request_or_too_much_of_one_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(BadHttp) as refused:
        reader().take(data)
    assert refused.value.status == status


def test_a_client_that_waits_before_it_sends_a_body_is_told() -> None:
    one = reader()
    assert one.take(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n") == []
    assert one.wants_continue
    assert not one.wants_continue, "once"
    assert [request.body for request in one.take(b"a")] == [b"a"]


def test_responses_are_written_and_read() -> None:
    one = ResponseReader(most_head=1000, most_body=100)
    data = b"HTTP/1.1 100 Continue\r\n\r\n" + response_bytes(200, b"{}", "application/json") + response_bytes(204, b"")
    first, second = one.take(data)
    assert (first.status, first.body, first.headers["content-type"], first.keeps_alive) == (
        200,
        b"{}",
        "application/json",
        True,
    )
    assert (second.status, second.body) == (204, b"")
    (last,) = one.take(b"".join(closing(response_bytes(404, b"gone"))))
    assert (last.status, last.body, last.keeps_alive) == (404, b"gone", False)


def test_a_response_of_a_head_request_has_a_length_and_no_body() -> None:
    assert response_bytes(200, b"abc", is_head=True).endswith(b"Content-Length: 3\r\n\r\n")


@pytest.mark.parametrize("data", [b"hello\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n"])
def test_a_response_that_is_none_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(BadHttp):
        ResponseReader(most_head=1000, most_body=100).take(data)


def test_a_request_of_a_client_is_one_to_a_server() -> None:
    data = request_bytes("POST", "/subjects/a%2Fb", "host:1", b"{}", {"Accept": "application/json"})
    assert reader().take(data) == [
        HttpRequest(
            "POST",
            "/subjects/a%2Fb",
            {"host": "host:1", "accept": "application/json", "content-length": "2"},
            b"{}",
        )
    ]
    with pytest.raises(ValueError, match="line break"):
        request_bytes("GET", "/", "host", None, {"X": "1\r\nY: 2"})


def test_a_thousand_offers_at_once_are_a_thousand_requests() -> None:
    offer = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert len(RequestReader(16 << 10, 1 << 20).take(offer * 1_000)) == 1_000


@pytest.mark.parametrize("body", [b"", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_nobody_is_connected_elsewhere(body: bytes) -> None:
    with pytest.raises(BadHttp, match="this is no proxy"):
        RequestReader(16 << 10, 1 << 20).take(b"CONNECT a:80 HTTP/1.1\r\nHost: x\r\n" + body + b"\r\nabcde")
