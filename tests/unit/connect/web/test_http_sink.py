"""Records to requests, against a strict server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.connector import Place, Refusal
from ottla.connect.connectors.web import client
from ottla.connect.data.columns import Schemaless
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import InvalidOption
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import at, sink
from tests.unit.connect.web.servers import Answer, Asked, WebServer

OURS = "ottla.connect.HttpSinkConnector"
CONFLUENTS = "io.confluent.connect.http.HttpSinkConnector"
AIVENS = "io.aiven.kafka.connect.http.HttpSinkConnector"
ORDER = struct([("id", Schema(Type.INT64))])


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits; how long they would have."""
    found: list[float] = []
    monkeypatch.setattr(client, "sleep", found.append)
    return found


def orders(*ids: int | None, first: int = 0, partition: int = 0, topic: str = "t", keys: Any = None) -> Records:
    value = column_of(ORDER.but(optional=True), [None if number is None else {"id": number} for number in ids])
    key = Schemaless(tuple(keys or [None] * len(ids)))
    made = records_of(topic, key, value, partitions=[partition] * len(ids), first=first)
    return made.but(offset=pa.array(range(first, first + len(ids)), pa.int64()))


def strict(good: Callable[[Any], bool] = lambda _: True, content_type: str = "application/json") -> WebServer:
    """An API that takes JSON, remembers ids, and refuses a whole request if one record in it is bad."""

    def answer(asked: Asked) -> Answer:
        if asked.method not in ("POST", "PUT"):
            return Answer(405)
        if asked.headers.get("content-type") != content_type:
            return Answer(415, b"unsupported media type")
        if "idempotency-key" not in asked.headers:
            return Answer(400, b"no key")
        try:
            if content_type.endswith("ndjson"):
                assert asked.body.endswith(b"\n")
                records = [json.loads(line) for line in asked.body.splitlines()]
            else:
                said = json.loads(asked.body)
                records = said if isinstance(said, list) else [said]
        except (ValueError, AssertionError):
            return Answer(400, b"no JSON")
        bad = [one for one in records if not good(one)]
        return Answer(422, f"bad: {bad[0]}".encode()) if bad else Answer(201)

    return WebServer(answer)


def posted(server: WebServer) -> list[Any]:
    return [json.loads(asked.body) for asked in server.asked]


def test_a_record_a_request_has_an_id_of_its_own(tmp_path: Path) -> None:
    with strict() as server:
        made = sink(tmp_path, connector__class=OURS, http__url=f"{server.url}/${{topic}}/in")
        made.put([orders(1, 2, first=7), orders(3, partition=1, topic="a b")], {at("t"): 9})
        assert posted(server) == [{"id": 1}, {"id": 2}, {"id": 3}]
        assert [asked.headers["idempotency-key"] for asked in server.asked] == ["t-0-7", "t-0-8", "a%20b-1-0"]
        assert [asked.path for asked in server.asked] == ["/t/in", "/t/in", "/a%20b/in"]
        assert server.connections == 1
        assert made.positions() is None  # at least once


def test_several_records_a_request_as_an_array_or_lines(tmp_path: Path) -> None:
    config = {"connector__class": OURS, "http__batch__records": "2", "http__method": "PUT"}
    with strict() as server:
        made = sink(tmp_path, **config, http__url=server.url, http__batch="array")
        made.put([orders(1, 2, 3), orders(4, partition=1)], {})
        assert posted(server) == [[{"id": 1}, {"id": 2}], [{"id": 3}], [{"id": 4}]]
        assert [asked.headers["idempotency-key"] for asked in server.asked] == ["t-0-0-1", "t-0-2", "t-1-0"]
    with strict(content_type="application/x-ndjson") as server:
        made = sink(tmp_path, **config, http__url=server.url, http__batch="lines")
        made.put([orders(1, 2, 3)], {})
        assert [asked.body for asked in server.asked] == [b'{"id":1}\n{"id":2}\n', b'{"id":3}\n']
        made = sink(tmp_path, **config, http__url=server.url, http__batch="lines", http__batch__bytes="10")
        made.put([orders(1, 2)], {})
        assert server.asked[-1].body == b'{"id":2}\n'


def test_records_of_a_partition_keep_their_order_across_batches(tmp_path: Path) -> None:
    with strict() as server:
        made = sink(tmp_path, connector__class=OURS, http__url=server.url)
        odd = orders(1, 3).but(position=pa.array([1, 3], pa.int64()), offset=pa.array([1, 3], pa.int64()))
        even = orders(0, 2).but(position=pa.array([0, 2], pa.int64()), offset=pa.array([0, 2], pa.int64()))
        made.put([odd, even], {})
        assert posted(server) == [{"id": number} for number in range(4)]


def test_an_id_is_of_the_records_own_topic_whatever_a_transform_made_of_it(tmp_path: Path) -> None:
    with strict() as server:
        made = sink(tmp_path, connector__class=OURS, http__url=server.url)
        context = made.context
        object.__setattr__(context, "places", lambda records: [Place("original", 5, 17)] * len(records))
        made.put([orders(1)], {})
        assert server.asked[0].headers["idempotency-key"] == "original-5-17"


def test_a_record_that_is_refused_is_found_in_its_batch_and_the_others_are_written(tmp_path: Path) -> None:
    refused: list[Refusal] = []
    with strict(lambda record: record["id"] != 3) as server:
        made = sink(tmp_path, refused, connector__class=OURS, http__url=server.url, http__batch="array")
        made.put([orders(1, 2, 3, 4, 5, first=10)], {})
        assert [one.position for one in refused] == [12]
        assert "answered 422: bad: {'id': 3}" in refused[0].reason
        arrays = [one for one in posted(server) if isinstance(one, list)]
        written = [record["id"] for one in arrays if all(r["id"] != 3 for r in one) for record in one]
        assert sorted(written) == [1, 2, 4, 5]
        # Without tolerance the put fails, and names what the server said.
        made = sink(tmp_path, connector__class=OURS, http__url=server.url, http__batch="array")
        with pytest.raises(DataError, match=r"bad: \{'id': 3\}"):
            made.put([orders(3)], {})


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_what_is_no_records_fault_is_no_refused_record(tmp_path: Path, status: int) -> None:
    refused: list[Refusal] = []
    config = {"http__auth": "bearer", "http__auth__token": "s3cret-token"}
    with WebServer(lambda asked: Answer(status, asked.headers["authorization"].encode())) as server:
        made = sink(tmp_path, refused, connector__class=OURS, http__url=server.url, **config)
        with pytest.raises(ConnectError, match=r"http\.url: ") as failed:
            made.put([orders(1)], {})
    assert not isinstance(failed.value, Retriable)
    assert refused == []
    assert "s3cret" not in str(failed.value)


def test_a_server_that_is_busy_is_waited_for_and_then_the_connector_starts_anew(
    tmp_path: Path, pauses: list[float]
) -> None:
    busy = [Answer(429, b"", {"Retry-After": "11"}), Answer(500), Answer(201)]
    with WebServer(lambda _: busy.pop(0)) as server:
        sink(tmp_path, connector__class=OURS, http__url=server.url).put([orders(1)], {})
        assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 1
    assert pauses[0] == 11
    with WebServer(lambda _: Answer(503)) as server:
        made = sink(tmp_path, connector__class=OURS, http__url=server.url, retries="1")
        with pytest.raises(Retriable, match="answered 503"):
            made.put([orders(1)], {})
        assert len(server.asked) == 2


def test_a_body_that_is_too_large_is_cut_in_halves(tmp_path: Path) -> None:
    with WebServer(lambda asked: Answer(413 if asked.body.count(b"id") > 2 else 200)) as server:
        sink(tmp_path, connector__class=OURS, http__url=server.url, http__batch="array").put([orders(1, 2, 3, 4)], {})
        assert posted(server)[1:] == [[{"id": 1}, {"id": 2}], [{"id": 3}, {"id": 4}]]


def test_tombstones_are_left_out_sent_refused_or_deletes(tmp_path: Path) -> None:
    refused: list[Refusal] = []

    def asked_for(url: str, **config: str) -> list[tuple[str, str, bytes]]:
        with WebServer(lambda _: Answer()) as server:
            made = sink(tmp_path, refused, connector__class=OURS, http__url=server.url + url, **config)
            made.put([orders(1, None, keys=["a", "b/c"])], {})
            return [(asked.method, asked.path, asked.body) for asked in server.asked]

    assert asked_for("/") == [("POST", "/", b'{"id":1}')]
    assert asked_for("/", behavior__on__null__values="send")[1:] == [("POST", "/", b"null")]
    deletes = asked_for("/${key}", behavior__on__null__values="delete", http__method="PUT")
    assert deletes == [("PUT", "/a", b'{"id":1}'), ("DELETE", "/b%2Fc", b"")]
    assert refused == []
    assert len(asked_for("/", behavior__on__null__values="fail")) == 1
    assert [one.position for one in refused] == [1]


def test_texts_are_sent_as_they_are_where_that_is_asked(tmp_path: Path) -> None:
    values = Schemaless(('{"already": "JSON"}', b"\x00bytes"))
    records = records_of("t", Schemaless((None, None)), values, partitions=[0, 0])
    records = records.but(offset=pa.array([0, 1], pa.int64()))
    with WebServer(lambda _: Answer()) as server:
        config = {"http__body": "text", "http__content__type": "text/x", "http__headers": "X-A: 1|X-B: b:c"}
        sink(tmp_path, connector__class=OURS, http__url=server.url, **config).put([records], {})
        assert [asked.body for asked in server.asked] == [b'{"already": "JSON"}', b"\x00bytes"]
        headers = server.asked[0].headers
        assert (headers["content-type"], headers["x-a"], headers["x-b"]) == ("text/x", "1", "b:c")


def test_confluents_options_mean_what_they_mean_there(tmp_path: Path) -> None:
    with WebServer(lambda _: Answer()) as server:
        config = {
            "http__api__url": f"{server.url}/${{topic}}",
            "headers": "Content-Type:application/vnd.x+json#X-A:1",
            "header__separator": "#",
            "auth__type": "basic",
            "connection__user": "alice",
            "connection__password": "secret",
            "request__body__format": "json",
            "confluent__topic__bootstrap__servers": "localhost:9092",
        }
        sink(tmp_path, connector__class=CONFLUENTS, **config).put([orders(1, None, 2)], {})
        array = {"batch__max__size": "10", "batch__json__as__array": "true"}
        sink(tmp_path, connector__class=CONFLUENTS, **config, **array).put([orders(1, 2)], {})
        texts = {
            "request__body__format": "string",
            "batch__max__size": "10",
            "batch__prefix": "<",
            "batch__suffix": ">",
        }
        sink(tmp_path, connector__class=CONFLUENTS, **{**config, **texts}).put([orders(1, 2)], {})
        assert [asked.body for asked in server.asked] == [
            b'{"id":1}',
            b'{"id":2}',
            b'[{"id":1},{"id":2}]',
            b"<Struct{id=1},Struct{id=2}>",
        ]
        headers = server.asked[0].headers
        assert headers["content-type"] == "application/vnd.x+json"
        assert headers["authorization"] == "Basic YWxpY2U6c2VjcmV0"


def test_aivens_options_mean_what_they_mean_there(tmp_path: Path) -> None:
    with WebServer(lambda _: Answer()) as server:
        config = {
            "http__url": server.url,
            "http__authorization__type": "static",
            "http__headers__authorization": "ApiKey k",
            "http__headers__additional": "X-A:1,X-B:2",
            "batching__enabled": "true",
            "batch__separator": "\\n",
        }
        sink(tmp_path, connector__class=AIVENS, **config).put([orders(1, 2)], {})
        (asked,) = server.asked
        assert asked.body == b'{"id":1}\n{"id":2}\n'
        assert (asked.headers["authorization"], asked.headers["x-b"]) == ("ApiKey k", "2")


REFUSED = [
    (OURS, {"http.url": "http://h/${offset}"}, "http.url: only"),
    (OURS, {"http.url": "http://${topic}.example/"}, "http.url: records do not choose the host"),
    (OURS, {"http.url": "http://h/", "http.auth": "basic"}, "http.auth.user is missing"),
    (OURS, {"http.url": "http://h/", "http.headers": "no colon"}, "http.headers: a header is NAME:VALUE"),
    (OURS, {"http.url": "http://h/", "http.headers": "Host: other"}, "http.headers: Host is set by the connector"),
    (OURS, {"http.url": "http://h/", "http.headers": "X: a\r\nY: b"}, "http.headers: the value of X has a control"),
    (OURS, {"http.url": "http://h/", "behavior.on.null.values": "delete"}, "needs ..key. in http.url"),
    (OURS, {"http.url": "http://h/", "http.id.header": "X: y"}, "http.id.header: 'X: y' is no name of a header"),
    (OURS, {"http.url": "http://h/", "http.id.header": "host"}, "http.id.header: host is set by the connector"),
    (OURS, {"http.url": "http://h/", "http.batchs": "array"}, "has no option http.batchs here"),
    (CONFLUENTS, {"http.api.url": "http://h/", "reporter.bootstrap.servers": "b:9092"}, "has no option reporter.b"),
    (CONFLUENTS, {"http.api.url": "http://h/", "auth.type": "OAUTH2"}, "Invalid value OAUTH2"),
    (AIVENS, {"http.url": "http://h/"}, "Missing required configuration .http.authorization.type"),
    (AIVENS, {"http.url": "http://h/", "http.authorization.type": "oauth2"}, "Invalid value oauth2"),
    (
        AIVENS,
        {"http.url": "http://h/", "http.authorization.type": "none", "http.headers.content.type": "a\r\nb"},
        "http.headers.content.type: the value of Content-Type has a control character",
    ),
]


@pytest.mark.parametrize(("name", "config", "said"), REFUSED)
def test_options_that_are_not_understood_are_refused_by_name(name: str, config: dict[str, str], said: str) -> None:
    kind = find_connector(name).load()
    with pytest.raises(InvalidOption, match=said):
        kind.rules_of(config)  # type: ignore[union-attr]
    assert kind.validate({**config, "topics": "t"})


@pytest.mark.parametrize("status", [404, 410])
def test_a_delete_of_what_is_gone_is_done(tmp_path: Path, status: int) -> None:
    """It comes again after a crash: the connector must not fail for ever."""
    with WebServer(lambda asked: Answer(status if asked.method == "DELETE" else 200)) as server:
        config = {"http__url": server.url + "/${key}", "behavior__on__null__values": "delete"}
        sink(tmp_path, connector__class=OURS, **config).put([orders(None, 1, keys=["a", "b"])], {})
        assert [(asked.method, asked.path) for asked in server.asked] == [("DELETE", "/a"), ("POST", "/b")]


def test_a_key_does_not_climb_out_of_the_path(tmp_path: Path) -> None:
    refused: list[Refusal] = []
    with WebServer(lambda _: Answer()) as server:
        config = {"http__url": server.url + "/items/${key}", "behavior__on__null__values": "delete"}
        made = sink(tmp_path, refused, connector__class=OURS, **config)
        made.put([orders(None, None, None, keys=["..", ".", "..."])], {})
        assert [asked.path for asked in server.asked] == ["/items/..."]
        sink(tmp_path, connector__class=OURS, http__url=server.url + "/?of=${key}").put([orders(1, keys=[".."])], {})
    assert [one.position for one in refused] == [0, 1]
