"""Records to documents, against a stand-in that is as strict as OpenSearch."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.connector import Refusal
from ottla.connect.connectors.search import sink as sink_module
from ottla.connect.connectors.search.bulk import Action, Outcome, outcomes
from ottla.connect.connectors.search.sink import index_of, mapping_of
from ottla.connect.connectors.web import client
from ottla.connect.data.columns import Schemaless
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, array, date, decimal, map_of, struct, timestamp
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import InvalidOption
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import sink
from tests.unit.connect.web.search_server import SearchServer
from tests.unit.connect.web.servers import Answer

CONFLUENTS = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
AIVENS = "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector"


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(client, "sleep", found.append)
    monkeypatch.setattr(sink_module, "sleep", found.append)
    return found


def rows(*pairs: tuple[Any, Any], first: int = 0, partition: int = 0, topic: str = "orders") -> Records:
    keys, values = Schemaless(tuple(key for key, _ in pairs)), Schemaless(tuple(value for _, value in pairs))
    made = records_of(topic, keys, values, partitions=[partition] * len(pairs), first=first)
    return made.but(offset=pa.array(range(first, first + len(pairs)), pa.int64()))


def opened(server: SearchServer, directory: Path, refused: list[Refusal] | None = None, **config: str) -> Any:
    return sink(directory, refused, **{"connector__class": AIVENS, "connection__url": server.url, **config})


def test_a_key_is_the_id_and_the_last_record_of_it_stays(tmp_path: Path) -> None:
    with SearchServer() as server:
        made = opened(server, tmp_path, behavior__on__null__values="delete")
        made.put([rows(("a", {"n": 1}), (7, {"n": 2}), ("a", {"n": 3}), ("b", {"n": 4}), ("b", None))], {})
        assert server.there("orders") == {"a": {"n": 3}, "7": {"n": 2}}
        assert made.positions() is None


def test_records_that_come_again_or_late_change_nothing(tmp_path: Path) -> None:
    with SearchServer() as server:
        old = rows(("a", {"n": 1}), ("b", {"n": 2}), ("b", None))
        made = opened(server, tmp_path, behavior__on__null__values="delete")
        made.put([old, rows(("a", {"n": 5}), first=3)], {})
        again = opened(server, tmp_path, behavior__on__null__values="delete")
        again.put([old], {})  # a start whose group was behind
        assert server.there("orders") == {"a": {"n": 5}}


def test_without_keys_ids_are_topic_partition_and_offset(tmp_path: Path) -> None:
    with SearchServer() as server:
        made = opened(server, tmp_path, key__ignore="true", connector__class=CONFLUENTS, write__method="insert")
        for _ in range(2):  # twice the same
            made.put([rows(("a", {"n": 1}), ("a", {"n": 2}), first=5), rows((None, {"n": 3}), partition=1)], {})
        assert server.there("orders") == {"orders+0+5": {"n": 1}, "orders+0+6": {"n": 2}, "orders+1+0": {"n": 3}}


def test_an_upsert_keeps_fields_and_the_order_when_one_is_put_off(tmp_path: Path) -> None:
    with SearchServer() as server:
        # The first of three for one document is put off once, the others are written meanwhile.
        server.put_off = lambda id, bulk: bulk == 1 and len(server.bulks[0]) == 1
        made = opened(server, tmp_path, index__write__method="upsert")
        made.put([rows(("a", {"n": 1, "x": 1}), ("a", {"n": 2}), ("a", {"n": 3}), ("b", {"n": 9}))], {})
        assert server.there("orders") == {"a": {"n": 3, "x": 1}, "b": {"n": 9}}
        assert [[id for _, id in bulk] for bulk in server.bulks] == [["a", "a", "a", "b"], ["a", "a", "a"]]


def test_a_deleted_document_stays_deleted_with_upserts(tmp_path: Path) -> None:
    with SearchServer() as server:
        made = opened(server, tmp_path, index__write__method="upsert", behavior__on__null__values="delete")
        made.put([rows(("a", {"n": 1}), ("a", None))], {})
        assert server.there("orders") == {}


def test_what_is_put_off_is_sent_again_alone_and_then_the_connector_starts_anew(
    tmp_path: Path, pauses: list[float]
) -> None:
    with SearchServer() as server:
        server.put_off = lambda id, bulk: id == "b" and bulk == 1
        opened(server, tmp_path).put([rows(("a", {"n": 1}), ("b", {"n": 2}), ("c", {"n": 3}))], {})
        assert server.bulks[1] == [("index", "b")]
        assert set(server.there("orders")) == {"a", "b", "c"}
        assert len(pauses) == 1
        server.put_off = lambda id, bulk: True
        with pytest.raises(Retriable, match="es_rejected_execution_exception"):
            opened(server, tmp_path, max__retries="2").put([rows(("d", {"n": 1}))], {})


def test_documents_that_do_not_fit_are_refused_and_the_others_are_written(tmp_path: Path) -> None:
    refused: list[Refusal] = []
    good = [("a", {"n": 1}), ("f", {"n": 6})]
    bad = [("b", {"n": {"no": "number"}}), (None, {"n": 1}), ("", {"n": 1}), (1.5, {"n": 1}), ("c", 5), ("x" * 600, {})]
    with SearchServer() as server:
        made = opened(server, tmp_path, refused, errors__tolerance="all")
        made.put([rows(good[0], *bad, good[1])], {})
        assert sorted(one.position for one in refused) == [1, 2, 3, 4, 5, 6]
        said = {one.position: one.reason for one in refused}
        assert "mapper_parsing_exception: failed to parse field [n] of type [long] (400)" in said[1]
        assert said[2] == "Key is used as document id and can not be null."
        assert server.there("orders") == dict(good)
        with pytest.raises(DataError, match="mapper_parsing_exception"):
            opened(server, tmp_path).put([rows(bad[0], first=9)], {})
        opened(server, tmp_path, behavior__on__malformed__documents="warn").put([rows(bad[0], first=9)], {})


def test_tombstones_by_behavior_on_null_values(tmp_path: Path) -> None:
    with SearchServer() as server:
        put = [rows(("a", {"n": 1}), ("a", None))]
        opened(server, tmp_path).put(put, {})  # Aiven's default: ignore
        assert server.there("orders") == {"a": {"n": 1}}
        with pytest.raises(DataError, match=r"behavior\.on\.null\.values is fail"):
            opened(server, tmp_path, connector__class=CONFLUENTS).put(put, {})


def test_a_bulk_has_a_number_of_documents_and_of_bytes_at_most_and_is_cut_if_it_is_too_large(tmp_path: Path) -> None:
    pairs = [(str(number), {"text": "x" * 400}) for number in range(8)]
    with SearchServer(most_bytes=1500) as server:
        opened(server, tmp_path, batch__size="3").put([rows(*pairs)], {})
        assert [len(bulk) for bulk in server.bulks] == [3, 3, 2]
        server.bulks.clear()
        opened(server, tmp_path, batch__size="100").put([rows(*pairs, first=8)], {})
        assert [len(bulk) for bulk in server.bulks] == [2, 2, 2, 2]
        assert len(server.there("orders")) == 8
        refused: list[Refusal] = []
        opened(server, tmp_path, refused).put([rows(("big", {"text": "x" * 2000}))], {})
        assert [one.position for one in refused] == [0]


HOSTILE = {
    "no JSON": Answer(200, b"<html>"),
    "cut": Answer(200, b'{"errors": false, "items": [{"index"'),
    "too few": Answer(200, b'{"errors": false, "items": []}'),
    "another action": Answer(200, b'{"errors": false, "items": [{"create": {"status": 201}}]}'),
    "no status": Answer(200, b'{"errors": false, "items": [{"index": {}}]}'),
    "a status that is none": Answer(200, b'{"errors": false, "items": [{"index": {"status": "201"}}]}'),
    "a list": Answer(200, b"[]"),
    "deep": Answer(200, b"[" * 100_000),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_reply_that_is_none_is_no_success(tmp_path: Path, case: str) -> None:
    with SearchServer() as server:
        made = opened(server, tmp_path)
        server.answer_instead = [HOSTILE[case]]
        with pytest.raises(Retriable, match="reply to _bulk is none"):
            made.put([rows(("a", {"n": 1}))], {})


def test_credentials_and_addresses_that_are_wrong_fail_the_connector(tmp_path: Path) -> None:
    with SearchServer(user="alice:secret") as server:
        opened(server, tmp_path, connection__username="alice", connection__password="secret").put([rows(("a", {}))], {})
        with pytest.raises(ConnectError, match=r"connection\.url: .*401") as failed:
            opened(server, tmp_path, connection__username="alice", connection__password="wrong-one")
        assert not isinstance(failed.value, Retriable)
        assert "wrong-one" not in str(failed.value)


def test_an_index_is_made_with_the_values_schema(tmp_path: Path) -> None:
    schema = struct([("id", Schema(Type.INT64)), ("at", timestamp()), ("price", decimal(2, optional=True))])
    value = column_of(schema, [{"id": 1, "at": 5, "price": Decimal("1.50")}])
    records = records_of("Orders", Schemaless(("a",)), value, partitions=[0]).but(offset=pa.array([0], pa.int64()))
    with SearchServer() as server:
        opened(server, tmp_path).put([records], {})
        assert server.mappings["orders"]["properties"]["at"] == {"type": "date", "format": "epoch_millis"}
        assert server.mappings["orders"]["properties"]["price"] == {"type": "double"}
        assert server.there("orders") == {"a": {"id": 1, "at": 5, "price": 1.5}}
    with SearchServer() as server:
        opened(server, tmp_path, schema__ignore="true").put([records], {})
        assert server.mappings["orders"] == {}


def test_names_of_indices_and_types_of_fields() -> None:
    assert [index_of(topic) for topic in ("Orders", "_x", "-x", "..", "a" * 300)] == [
        "orders",
        "x",
        "x",
        "dotdot",
        "a" * 255,
    ]
    inner = struct(
        [("tags", array(Schema(Type.STRING))), ("on", date()), ("more", map_of(Schema(Type.STRING), date()))]
    )
    assert mapping_of(inner)["properties"]["on"] == {"type": "integer"}
    assert mapping_of(inner)["properties"]["tags"]["type"] == "text"
    assert mapping_of(inner)["properties"]["more"] == {"type": "object"}


REFUSED = [
    (CONFLUENTS, {"data.stream.type": "LOGS"}, "has no option data.stream.type"),
    (CONFLUENTS, {"compact.map.entries": "false"}, "compact.map.entries=False is not supported"),
    (CONFLUENTS, {"connection.username": "a"}, "connection.password: one is missing"),
    (AIVENS, {"routing.type": "key"}, "has no option routing.type"),
    (AIVENS, {"connection.url": "http://h:9200?x=1"}, "connection.url: it has a query"),
    (AIVENS, {"connection.url": "https://user:p@h:9200"}, "credentials"),
]


@pytest.mark.parametrize(("name", "config", "said"), REFUSED)
def test_options_that_are_not_understood_are_refused_by_name(name: str, config: dict[str, str], said: str) -> None:
    kind = find_connector(name).load()
    with pytest.raises(InvalidOption, match=said):
        kind.rules_of({"connection.url": "http://h:9200", **config})  # type: ignore[union-attr]


@pytest.mark.parametrize("topic", ["x/_doc/1", "a?b", "*", "__all", "_", "two words", "a,b", "a\nb"])
def test_a_topic_that_can_be_no_index_is_refused_and_no_path_is_asked_for(tmp_path: Path, topic: str) -> None:
    """A transform may make topics of what is in records."""
    refused: list[Refusal] = []
    with SearchServer() as server:
        made = opened(server, tmp_path, refused)
        before = len(server.web.asked)
        made.put([rows(("k", {"a": 1}), topic=topic)], {})
        assert server.web.asked[before:] == []
    assert [one.position for one in refused] == [0]


def test_a_reason_is_short_printable_and_without_credentials() -> None:
    said = {"items": [{"index": {"status": 400, "error": {"type": "bad", "reason": "\x1b s3cret " + "x" * 9_000}}}]}
    action = Action(0, "index", "i", "k", b"{}", 1)
    (found,) = outcomes(json.dumps(said).encode(), [action], ("s3cret",))
    assert found.outcome is Outcome.REFUSED
    assert "s3cret" not in found.reason
    assert found.reason.isprintable()
    assert len(found.reason) < 400
