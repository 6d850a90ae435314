"""Replies to records: every way from one reply to the next, through starts, against APIs that grow."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ottla.connect.connectors.web import client
from ottla.connect.connectors.web.source import next_link, resolve
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import SourceRun
from tests.unit.connect.web.servers import Answer, Asked, WebServer

PAGE = 3


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "sleep", lambda _: None)


class Api:
    """Events, three at a time, in each of the ways in which APIs give them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.is_inclusive = True

    def add(self, count: int, **more: Any) -> None:
        for _ in range(count):
            number = len(self.events)
            self.events.append({"id": number, "at": f"2026-01-{number // 2:02}", **more})

    def __call__(self, asked: Asked) -> Answer:
        if asked.headers.get("accept") != "application/json" or asked.method != "GET":
            return Answer(406)
        url = urlsplit(asked.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        headers: dict[str, str] = {}
        said: Any = None
        match url.path:
            case "/cursor":
                begin = int(query["after"] or 0)
                found = self.events[begin : begin + PAGE]
                more = begin + PAGE < len(self.events)
                said = {"data": {"events": found}, "meta": {"next": str(begin + PAGE) if more else None}}
            case "/page":
                begin = (int(query["page"]) - 1) * PAGE
                said = self.events[begin : begin + PAGE]
            case "/link":
                begin = int(query.get("from", "0"))
                said = self.events[begin : begin + PAGE]
                if begin + PAGE < len(self.events):
                    headers["Link"] = (
                        f'</link?from=0>; rel="first", </link?from={begin + PAGE}>; rel="next"; title="a, b"'
                    )
            case "/since":
                since = query["t"]
                behind = [one for one in self.events if one["at"] > since or (self.is_inclusive and one["at"] == since)]
                said = behind[:PAGE]
            case "/all":
                said = self.events
            case _:
                return Answer(404)
        return Answer(200, json.dumps(said).encode(), {"Content-Type": "application/json", **headers})


WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "cursor": (
        "/cursor?after=${offset}",
        {"http__items__pointer": "/data/events", "http__offset__pointer": "/meta/next", "http__key__pointer": "/id"},
    ),
    "page": ("/page?page=${offset}", {}),
    "link": ("/link", {}),
    "item": ("/since?t=${offset}", {"http__offset__pointer": "/at"}),
    "none": ("/all", {}),
}


def run(server: WebServer, directory: Path, way: str, **more: str) -> SourceRun:
    path, config = WAYS[way]
    return SourceRun(
        directory,
        connector__class="ottla.connect.HttpSourceConnector",
        http__url=server.url + path,
        http__offset__mode=way,
        http__interval__ms="0",
        topic="t",
        **{**config, **more},
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("restarts", [False, True], ids=["one start", "a start for each poll"])
def test_every_item_comes_once_and_those_that_are_added_later_too(tmp_path: Path, way: str, restarts: bool) -> None:
    api = Api()
    with WebServer(api) as server:
        reading = run(server, tmp_path, way)
        source = reading.started()
        found: list[Any] = []

        def poll() -> None:
            nonlocal source
            for _ in range(8):
                if restarts:
                    source.stop()
                    source = reading.started()
                found.extend(reading.take(source))

        poll()
        assert found == []
        for count in (2, 3, 1, 7, 1):
            api.add(count)
            poll()
            assert [one["id"] for one in found] == list(range(len(api.events)))
        source.stop()


def test_an_api_that_gives_only_what_is_behind_an_offset_is_read_too(tmp_path: Path) -> None:
    api = Api()
    api.is_inclusive = False
    api.add(6)
    for number, one in enumerate(api.events):
        one["at"] = f"2026-01-{number:02}"
    with WebServer(api) as server:
        reading = run(server, tmp_path, "item")
        assert [one["id"] for one in reading.take(reading.started(), 4)] == list(range(6))


def test_a_key_and_an_offset_are_where_their_pointers_lead(tmp_path: Path) -> None:
    api = Api()
    api.add(4)
    with WebServer(api) as server:
        reading = run(server, tmp_path, "cursor")
        (first,) = reading.started().poll(0)
        assert first.records.key.values == (0, 1, 2)
        assert (first.partition, first.offset) == (
            {"url": f"{server.url}/cursor?after=${{offset}}"},
            {"at": "3", "items": 0},
        )


@pytest.mark.parametrize("way", ["cursor", "none"])
def test_a_reply_that_became_shorter_is_refused(tmp_path: Path, way: str) -> None:
    api = Api()
    api.add(2)
    with WebServer(api) as server:
        reading = run(server, tmp_path, way)
        source = reading.started()
        reading.take(source)
        api.events.pop()
        with pytest.raises(ConnectError, match="does not only grow"):
            reading.take(source)


def test_items_out_of_order_are_refused_where_the_order_is_the_offset(tmp_path: Path) -> None:
    api = Api()
    api.add(3)
    api.events[1]["at"] = "2027"
    with WebServer(api) as server:
        reading = run(server, tmp_path, "item")
        with pytest.raises(ConnectError, match=r"not in the order of http\.offset\.pointer=/at"):
            reading.take(reading.started())


HOSTILE = {
    b"no JSON": "no JSON",
    b'{"data": {"events": [1': "no JSON",
    b"[" * 100_000: "no JSON|deep",
    b"NaN": "no JSON",
    b'{"data": {"events": {}}}': "no array is at http.items.pointer=/data/events",
    b'{"data": 5}': "no array",
    b'{"data": {"events": [1e999]}, "meta": {}}': "too large",
    b'{"data": {"events": [123456789012345678901234567890]}, "meta": {}}': "64 bits",
    b'{"data": {"events": [1]}, "meta": {"next": {"a": 1}}}': "no text or number is at http.offset.pointer",
    b"x" * 2000: "more than 1000 bytes",
    b"\xff\xfe": "no JSON",
}


@pytest.mark.parametrize("said", HOSTILE, ids=lambda said: repr(said[:30]))
def test_a_reply_that_is_not_what_was_expected_fails_by_name(tmp_path: Path, said: bytes) -> None:
    with WebServer(lambda _: Answer(200, said)) as server:
        reading = run(server, tmp_path, "cursor", http__reply__bytes="1000" if len(said) == 2000 else "1000000")
        with pytest.raises(ConnectError, match=HOSTILE[said]):
            reading.take(reading.started())
        assert reading.offsets == {}


def test_nothing_new_and_later_and_no_are_told_apart(tmp_path: Path) -> None:
    answers = [Answer(204), Answer(304), Answer(503), Answer(200, b"[1]"), Answer(410, b"gone"), *[Answer(500)] * 9]
    with WebServer(lambda _: answers.pop(0)) as server:
        reading = run(server, tmp_path, "none", retries="2")
        source = reading.started()
        assert reading.take(source, 3) == [1]
        with pytest.raises(ConnectError, match="answered 410: gone"):
            reading.take(source)
        with pytest.raises(Retriable):
            reading.take(source)


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("way", ["cursor", "link", "item", "none"])
def test_nothing_new_is_said_behind_items_too(tmp_path: Path, way: str, status: int) -> None:
    api = Api()
    api.add(2)
    is_new = True
    with WebServer(lambda asked: api(asked) if is_new else Answer(status)) as server:
        reading = run(server, tmp_path, way)
        source = reading.started()
        assert len(reading.take(source)) == 2
        is_new = False
        assert reading.take(source, 2) == []
        api.add(1)
        is_new = True
        assert [one["id"] for one in reading.take(source, 2)] == [2]


@pytest.mark.parametrize("values", [[1, 2, 10], ["a", "b", "c"]])
def test_items_before_the_offset_are_refused_and_not_written_again(tmp_path: Path, values: list[Any]) -> None:
    said = json.dumps([{"at": value} for value in values]).encode()
    with WebServer(lambda _: Answer(200, said)) as server:
        reading = run(server, tmp_path, "item")
        source = reading.started()
        assert len(reading.take(source)) == 3
        with pytest.raises(ConnectError, match="is before the offset"):
            reading.take(source)


def test_a_page_that_becomes_shorter_while_the_next_begins_is_refused(tmp_path: Path) -> None:
    answers = [b"[1, 2]", b"[1, 2]", b"[4]", b"[1]"]  # 2 went, and 3 took its place where it is not seen
    with WebServer(lambda _: Answer(200, answers.pop(0))) as server:
        reading = run(server, tmp_path, "page")
        source = reading.started()
        assert reading.take(source) == [1, 2]
        with pytest.raises(ConnectError, match="does not only grow"):
            reading.take(source)


def test_a_stored_offset_sends_no_credentials_to_another_origin(tmp_path: Path) -> None:
    with WebServer(lambda _: Answer(200, b"[1]")) as server, WebServer(lambda _: Answer(200, b"[]")) as other:
        reading = run(server, tmp_path, "link", http__auth="bearer", http__auth__token="token")
        reading.take(reading.started())
        for offset in reading.offsets.values():
            offset["at"] = f"{other.url}/steal"
        with pytest.raises(ConnectError, match="another origin"):
            reading.take(reading.started())
        assert other.asked == []


def test_a_link_to_another_origin_is_not_followed(tmp_path: Path) -> None:
    with WebServer(lambda _: Answer(200, b"[1]", {"Link": '<http://127.0.0.1:9/steal>; rel="next"'})) as server:
        reading = run(server, tmp_path, "link", http__auth="bearer", http__auth__token="token")
        with pytest.raises(ConnectError, match="another origin"):
            reading.take(reading.started())
        assert server.asked[0].headers["authorization"] == "Bearer token"


def test_links_and_pointers_are_read_as_their_rfcs_say() -> None:
    assert next_link('<a>; rel="prev", <b?x=1,2>; rel="last next"') == "b?x=1,2"
    assert next_link("<b>;rel=next") == "b"
    assert next_link('<b>; title="; rel=next"; rel="prev"') is None
    assert next_link("b; rel=next") is None
    value = {"a/b": [{"m~n": 1}], "": 2}
    assert resolve(value, "/a~1b/0/m~0n") == 1
    assert resolve(value, "/") == 2
    assert resolve(value, "") is value
    for missing in ("/x", "/a~1b/1", "/a~1b/00", "/a~1b/-1", "/a~1b/0/m~0n/x"):
        assert resolve(value, missing) not in (value, 1, 2)


REFUSED = [
    ({"http.offset.mode": "cursor", "http.url": "http://h/"}, "http.url: http.offset.mode=cursor needs"),
    ({"http.offset.mode": "cursor", "http.url": "http://h/${offset}"}, "http.offset.pointer is missing"),
    ({"http.offset.mode": "page", "http.url": "http://${offset}/"}, "does not choose the host"),
    ({"http.offset.mode": "link", "http.url": "http://h/${offset}"}, "has no"),
    ({"http.offset.mode": "page", "http.url": "http://h/${offset}", "http.offset.initial": "x"}, "a page is a number"),
    ({"http.offset.mode": "none", "http.url": "http://h/", "http.items.pointer": "a.b"}, "begins with /"),
    ({"http.offset.mode": "none", "http.url": "http://h/", "offset.mode": "x"}, "has no option offset.mode"),
]


@pytest.mark.parametrize(("config", "said"), REFUSED)
def test_options_that_do_not_go_together_are_refused(config: dict[str, str], said: str) -> None:
    kind = find_connector("ottla.connect.HttpSourceConnector").load()
    ((setting, problem),) = kind.validate({**config, "topic": "t"})
    assert said in problem
    assert setting in problem or setting == "http.url"
    with pytest.raises(InvalidOption):
        kind({**config, "topic": "t"}, None).start()  # type: ignore[arg-type]
