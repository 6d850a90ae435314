"""Files on S3: both ways, exactly once without a rename, and against a worker that wakes up late."""

import json
import logging
import re
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
from pyarrow import csv, parquet

from ottla.connect.connectors.s3_directory import S3Directory, signed
from ottla.connect.data.columns import Column, nothing
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.unit.connect.connectors.sources import SourceRun, at, sink, sink_records
from tests.unit.connect.s3_server import S3Server

ORDER = struct([("id", Schema(Type.INT64)), ("name", Schema(Type.STRING, optional=True))])


def orders(*ids: int) -> Column:
    return column_of(ORDER, [{"id": number, "name": f"n{number}"} for number in ids])


@pytest.fixture
def bucket(s3: S3Server, request: pytest.FixtureRequest) -> str:
    return s3.bucket(re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-60:].strip("-"))


def made_sink(s3: S3Server, bucket: str, format: str = "json", **config: str) -> Any:
    given = {"connector.class": "FilesSink", "directory": f"s3://{bucket}/out", "format": format, **s3.config, **config}
    made = sink(Path(), **given)
    made.positions()
    return made


def listed(s3: S3Server, bucket: str) -> list[str]:
    """Files that a manifest names, in the order of the manifests."""
    manifests = s3.names(f"{bucket}/out/_manifest")
    return [one for name in manifests for one in json.loads(s3.read(f"{bucket}/out/_manifest/{name}"))["files"]]


def there(s3: S3Server, bucket: str) -> list[str]:
    return [name for name in s3.names(f"{bucket}/out") if not name.startswith("_manifest/")]


def ids(s3: S3Server, bucket: str) -> list[int]:
    found: list[int] = []
    for name in listed(s3, bucket):
        content = s3.read(f"{bucket}/out/{name}")
        if name.endswith(".jsonl"):
            found += [json.loads(line)["id"] for line in content.splitlines()]
        else:
            reader = csv.read_csv if name.endswith(".csv") else parquet.read_table
            found += reader(BytesIO(content)).column("id").to_pylist()
    return found


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_put_is_files_and_then_one_manifest(s3: S3Server, bucket: str, format: str) -> None:
    made = made_sink(s3, bucket, format)
    assert made.positions() == {}
    made.put([sink_records("t", orders(1, 2), 0)], {at("t"): 2})
    two = [sink_records("t", orders(3), 2), sink_records("t", orders(4), 0, partition=1)]
    made.put(two, {at("t"): 3, at("t", 1): 1})
    assert ids(s3, bucket) == [1, 2, 3, 4]
    assert sorted(listed(s3, bucket)) == there(s3, bucket)
    again = made_sink(s3, bucket, format)
    assert again.positions() == {at("t"): 3, at("t", 1): 1}
    again.put([sink_records("t", orders(5), 3)], {at("t"): 4})
    assert ids(s3, bucket) == [1, 2, 3, 4, 5]


def test_what_a_put_leaves_that_died_is_removed_and_put_again(s3: S3Server, bucket: str) -> None:
    made = made_sink(s3, bucket)
    made.put([sink_records("t", orders(1), 0)], {at("t"): 1})
    two = [sink_records("t", orders(2), 1), sink_records("t", orders(3), 0, partition=1)]
    with patch.object(S3Directory, "_commit", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        made.put(two, {at("t"): 2, at("t", 1): 1})
    assert len(there(s3, bucket)) == 3
    again = made_sink(s3, bucket)
    assert again.positions() == {at("t"): 1}
    again.put([sink_records("t", orders(2, 9), 1)], {at("t"): 3})
    assert ids(s3, bucket) == [1, 2, 9]
    assert sorted(listed(s3, bucket)) == there(s3, bucket)


def test_of_two_workers_the_late_one_writes_nothing(s3: S3Server, bucket: str) -> None:
    late = made_sink(s3, bucket)
    late.put([sink_records("t", orders(1), 0)], {at("t"): 1})
    new = made_sink(s3, bucket)
    new.put([sink_records("t", orders(2), 1)], {at("t"): 2})
    with pytest.raises(Retriable, match="another worker has written"):
        late.put([sink_records("t", orders(2), 1)], {at("t"): 2})
    assert sorted(listed(s3, bucket)) == there(s3, bucket)
    assert late.positions() == {at("t"): 2}
    late.put([sink_records("t", orders(3), 2)], {at("t"): 3})  # it has looked, and takes over
    with pytest.raises(Retriable, match="another worker has written"):
        new.put([sink_records("t", orders(3), 2)], {at("t"): 3})
    assert ids(s3, bucket) == [1, 2, 3]


def test_a_worker_is_overtaken_between_its_files_and_its_manifest(s3: S3Server, bucket: str) -> None:
    late = made_sink(s3, bucket)
    late.put([sink_records("t", orders(1), 0)], {at("t"): 1})
    new, real = made_sink(s3, bucket), S3Directory._commit

    def overtaken(self: S3Directory, *given: Any) -> None:
        if self is late._s3 and not new._s3._owner:
            new.put([sink_records("t", orders(2), 1)], {at("t"): 2})  # which removes the files of the late one
        real(self, *given)

    with patch.object(S3Directory, "_commit", overtaken), pytest.raises(Retriable):
        late.put([sink_records("t", orders(2, 3), 1)], {at("t"): 3})
    assert ids(s3, bucket) == [1, 2]
    assert sorted(listed(s3, bucket)) == there(s3, bucket)


def test_without_keys_a_warning_says_what_is_not_guaranteed(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = made_sink(s3, bucket)
    monkeypatch.setattr(S3Directory, "_keys", lambda self: None)
    with caplog.at_level(logging.WARNING):
        made.put([sink_records("t", orders(1), 0)], {at("t"): 1})
    assert "one worker at a time" in caplog.text
    late = made_sink(s3, bucket)
    made.put([sink_records("t", orders(2), 1)], {at("t"): 2})
    with pytest.raises(Retriable):
        late.put([sink_records("t", orders(2), 1)], {at("t"): 2})
    assert ids(s3, bucket) == [1, 2]


def test_objects_become_records_and_grow_and_are_read_on(s3: S3Server, bucket: str) -> None:
    s3.write(f"{bucket}/in/a.jsonl", b'{"id": 1}\n{"id": 2}\n')
    s3.write(f"{bucket}/in/deeper/b.jsonl", b'{"id": 9}\n')
    config = {"connector__class": "FilesSource", "topic": "t", "format": "json", "file__settle__ms": "0"}
    run = SourceRun(Path(), directory=f"s3://{bucket}/in/", **config, **s3.config)
    assert run.take(run.started(), 3) == [{"id": 1}, {"id": 2}]
    s3.write(f"{bucket}/in/a.jsonl", b'{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    assert run.take(run.started(), 3) == [{"id": 3}]
    s3.write(f"{bucket}/in/a.jsonl", b"{}\n")
    with pytest.raises(ConnectError, match=r"s3://.*/in/a\.jsonl was read up to record 3, and is another file now"):
        run.take(run.started(), 3)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_what_the_sink_wrote_the_source_reads(s3: S3Server, bucket: str, format: str) -> None:
    made_sink(s3, bucket, format).put([sink_records("t", orders(1, 2), 0)], {at("t"): 2})
    config = {"connector__class": "FilesSource", "topic": "t", "file__settle__ms": "0", "pattern": f"*.{format}"}
    run = SourceRun(Path(), directory=f"s3://{bucket}/out", format=format, **config, **s3.config)
    assert [str(row["id"]) for row in run.take(run.started(), 3)] == ["1", "2"]


CONFLUENT = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "schema.compatibility": "NONE",
    "flush.size": "2",
}


def test_a_configuration_of_confluents_has_files_where_confluents_are(s3: S3Server, bucket: str) -> None:
    config = CONFLUENT | s3.config | {"s3.bucket.name": bucket}
    made = sink(Path(), **config)
    made.positions()
    made.put([sink_records("t", orders(1, 2, 3), 40)], {at("t"): 43})
    place = f"{bucket}/topics/t/partition=0"
    assert s3.names(place) == ["t+0+0000000040+w1.json", "t+0+0000000042+w1.json"]
    assert s3.read(f"{place}/t+0+0000000042+w1.json") == b'{"id":3,"name":"n3"}\n'
    again = sink(Path(), **config)
    assert again.positions() == {at("t"): 43}
    s3.write(f"{place}/t+0+0000000043+w1.json", b"left by a worker that died\n")
    gone = sink_records("t", orders(4), 43).but(value=nothing(1))
    with pytest.raises(ConnectError, match=r"offset 43 of t-0 has no value: set behavior\.on\.null\.values=ignore"):
        again.put([gone], {at("t"): 44})
    ignoring = sink(Path(), **config, **{"behavior.on.null.values": "ignore"})
    ignoring.positions()
    ignoring.put([gone, sink_records("t", orders(5), 44)], {at("t"): 45})
    assert s3.names(place)[2:] == ["t+0+0000000044+w3.json"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"format.class": "io.confluent.connect.s3.format.avro.AvroFormat"}, r"format\.class"),
        ({"partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner"}, r"partitioner\.class"),
        ({"s3.compression.type": "gzip"}, r"s3\.compression\.type"),
        ({"s3.ssea.name": "AES256"}, r"has no option s3\.ssea\.name here"),
        ({"store.url": "minio:9000"}, r"store\.url=minio:9000: name it as http://HOST:PORT"),
    ],
)
def test_options_of_confluents_that_we_lack_are_refused_by_name(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        sink(Path(), **(CONFLUENT | {"s3.bucket.name": "b"} | options))


def test_a_topic_that_a_transform_has_renamed_is_refused(s3: S3Server, bucket: str) -> None:
    with pytest.raises(ConnectError, match="a transform has renamed a topic to other"):
        made_sink(s3, bucket).put([sink_records("other", orders(1), 0)], {at("t"): 1})


def test_a_bucket_that_is_not_there_is_named(s3: S3Server) -> None:
    with pytest.raises(ConnectError, match="there is no bucket nowhere"):
        made_sink(s3, "nowhere")
    config = {"connector__class": "FilesSource", "topic": "t", "format": "json"}
    with pytest.raises(ConnectError, match="there is no bucket nowhere"):
        SourceRun(Path(), directory="s3://nowhere/in", **config, **s3.config).started()


class _Forbids(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.send_response(403)
        body = b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = _answer  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_keys_that_are_wrong_are_told_without_the_secret(s3: S3Server) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Forbids)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(ConnectError) as told:
            made_sink(s3, "shop", **{"store.url": f"http://127.0.0.1:{server.server_port}"})
    finally:
        server.shutdown()
        server.server_close()
    assert "s3://shop/out" in str(told.value)
    assert not isinstance(told.value, Retriable)
    assert s3.config["aws.secret.access.key"] not in str(told.value)


def test_a_signature_is_that_of_amazons_example() -> None:
    """From "Signature Calculations for the Authorization Header", its example of a PUT."""
    keys = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None)
    headers = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}
    sent = signed(
        "PUT",
        "https://examplebucket.s3.amazonaws.com/test%24file.text",
        headers,
        b"Welcome to Amazon S3.",
        keys,
        "us-east-1",
        datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert sent["authorization"].endswith("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
