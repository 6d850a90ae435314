"""Lines to records and records to lines, as Kafka's console tools have it."""

import io

import pytest

from ottla.base.errors import OttlaError
from ottla.cli.console.console_producer import _settings
from ottla.cli.console.console_producer import main as send_lines
from ottla.cli.console.console_producer_options import PROGRAM
from ottla.cli.console.formatters import DEFAULT, formatter
from ottla.cli.console.line_reader import LineError, LineReader, ParsedLine
from ottla.cli.failures import Terse
from ottla.cli.options.reading import read
from ottla.records.kernel import ConsumerRecord
from ottla.wire import messages
from ottla.wire.codec import encode


def only(line: str, **properties: str) -> ParsedLine:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    (found,) = LineReader(named).lines(io.BytesIO(line.encode() + b"\n"))
    return found


def test_a_line_is_a_value() -> None:
    assert only("a\tb") == ParsedLine(None, b"a\tb", [])
    assert only("a\r") == ParsedLine(None, b"a", [])
    assert [line.value for line in LineReader({}).lines(io.BytesIO(b"a\n\nb"))] == [b"a", b"", b"b"]


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    assert [line.value for line in LineReader({}).lines(io.BytesIO(b"\xff\xfe\n"))] == [b"\xff\xfe"]


def test_headers_and_keys_come_first() -> None:
    line = only("h1:v1,h2:\tk:v:w", parse_key="true", key_separator=":", parse_headers="true")
    assert line == ParsedLine(b"k", b"v:w", [("h1", b"v1"), ("h2", b"")])


def test_the_marker_stands_for_null() -> None:
    assert only("NUL\tNUL", parse_key="true", null_marker="NUL") == ParsedLine(None, None, [])
    assert only("h:NUL\tv", parse_headers="true", null_marker="NUL") == ParsedLine(None, b"v", [("h", None)])


@pytest.mark.parametrize(
    ("line", "properties", "complaint"),
    [
        ("nokey", {"parse_key": "true"}, "No key separator found on line number 1: 'nokey'"),
        ("x", {"parse_headers": "true"}, "No headers delimiter found on line number 1: 'x'"),
        ("h\tx", {"parse_headers": "true"}, "No header key separator found in pair 'h' on line number 1"),
        ("x", {"headers_separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ("x", {"parse_keys": "true"}, "the reader of lines has no property parse.keys"),
    ],
)
def test_what_is_wrong_is_told(line: str, properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(LineError) as told:
        only(line, **properties)
    assert complaint in str(told.value)


def test_errors_may_be_ignored() -> None:
    assert only("nokey", parse_key="true", ignore_error="true") == ParsedLine(None, b"nokey", [])


def test_options_are_settings_and_their_defaults_give_way_to_properties() -> None:
    words = ["--bootstrap-server", "b:1", "--topic", "t", "--command-property", "linger.ms=7", "--batch-size", "5"]
    settings = _settings(read(PROGRAM, words))
    assert settings["linger.ms"] == "7"
    assert settings["retries"] == "3"
    assert settings["client.id"] == "console-producer"
    assert "compression.type" not in settings
    assert _settings(read(PROGRAM, [*words, "--timeout", "9", "--compression-codec"]))["linger.ms"] == "9"
    assert _settings(read(PROGRAM, [*words, "--compression-codec"]))["compression.type"] == "gzip"


RECORD = ConsumerRecord("t", 2, 7, 1000, b"k", b"\x00\x00\x00\x00\x00\x00\x00\x05", (("h", b"v"), ("n", None)))


def shown(record: ConsumerRecord, **properties: str) -> bytes:
    return formatter(DEFAULT, {name.replace("_", "."): value for name, value in properties.items()})(record)


def test_fields_are_in_kafkas_order() -> None:
    everything = {f"print_{part}": "true" for part in ("key", "timestamp", "partition", "offset", "headers", "epoch")}
    assert shown(RECORD, **everything, value_deserializer="long") == (
        b"CreateTime:1000\tPartition:2\tOffset:7\tEpoch:NOT_PRESENT\th:v,n:null\tk\t5\n"
    )


def test_separators_and_nulls_have_texts() -> None:
    nothing = ConsumerRecord("t", 0, 0)
    texts = {"print_key": "true", "key_separator": "|", "line_separator": ";", "null_literal": "-"}
    assert shown(nothing, **texts) == b"-|-;"
    assert shown(nothing, print_headers="true", print_timestamp="true", print_value="false") == (
        b"NO_TIMESTAMP\tNO_HEADERS\n"
    )


def test_a_formatter_or_property_that_is_none_is_refused() -> None:
    assert formatter("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})(RECORD) == b""
    for name, properties in (("nonsense", {}), (DEFAULT, {"print.keys": "true"}), (DEFAULT, {"key.deserializer": "x"})):
        with pytest.raises(Terse):
            formatter(name, properties)


def test_records_of_kafkas_own_topics_are_json() -> None:
    key = b"\0\1" + encode(messages.OffsetCommitKey(group="g\u00fc", topic="t", partition=3), 0)
    value = b"\0\4" + encode(messages.OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9), 4)
    shows = formatter("org.apache.kafka.tools.consumer.OffsetsMessageFormatter", {})
    shown_key = '{"key":{"type":1,"data":{"group":"g\u00fc","topic":"t","partition":3}},"value":'
    assert shows(ConsumerRecord("t", 0, 0, 0, key, None)).decode() == shown_key + "null}"
    assert shows(ConsumerRecord("t", 0, 0, 0, key, value)).decode() == (
        shown_key + '{"version":4,"data":{"offset":7,"leaderEpoch":-1,"metadata":"m","commitTimestamp":9}}}'
    )


def test_a_formatter_of_kafkas_own_topics_prints_its_records_only() -> None:
    key = b"\0\1" + encode(messages.OffsetCommitKey(group="g", topic="t", partition=3), 0)
    shows = formatter("org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter", {})
    for other in (key, b"\x7f\0", None):
        assert shows(ConsumerRecord("t", 0, 0, 0, other, None)) == b""
    with pytest.raises(OttlaError, match="Could not read record at offset 5 due to: "):
        shows(ConsumerRecord("t", 0, 5, 0, b"\0\2", None))
    with pytest.raises(Terse, match=r"has no property print\.key"):
        formatter("org.apache.kafka.tools.consumer.OffsetsMessageFormatter", {"print.key": "true"})


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--sync"], 1)])
def test_what_cannot_be_sent_is_told_and_ends_a_producer_that_waits_for_it(
    words: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Kafka's: its callback logs, its future raises."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    nowhere = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--max-block-ms", "50"]
    assert send_lines([*nowhere, *words]) == status
    notice, *told = capsys.readouterr().err.splitlines()
    assert notice.endswith("cannot connect to 127.0.0.1:1: connection refused; trying again")
    assert len(told) == 2 - status
