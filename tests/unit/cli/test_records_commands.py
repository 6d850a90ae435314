"""`ottla produce`, `consume`, `tail` and `copy` against a node."""

import io
import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.cli.records.progress import Progress
from ottla.errors import KafkaError
from ottla.testing import Broker

pytestmark = pytest.mark.slow  # they start nodes in processes of their own


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


Run = Callable[..., str]


@pytest.fixture
def run(node: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command of `ottla` and returns what it printed; what it complained of is kept in `run.err`."""

    def command(name: str, *words: str, status: int = 0) -> str:
        found = main([name, *words, "-b", node.bootstrap])
        out, err = capfdbinary.readouterr()
        command.err = err.decode()  # type: ignore[attr-defined]
        assert found == status, err
        return out.decode(errors="replace")

    return command


@pytest.fixture
def topic(node: Broker, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "-").replace("]", "")
    node.create_topic(name, partitions=2)
    return str(name)


@pytest.fixture
def orders(node: Broker, topic: str) -> str:
    """Ten records, five in each partition, a second apart."""
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in range(10):
            producer.send(
                topic,
                json.dumps({"number": number, "name": f"order {number}"}).encode(),
                f"customer-{number % 3}".encode(),
                partition=number % 2,
                timestamp_ms=1_700_000_000_000 + number * 1000,
                headers=[("trace", str(number).encode()), ("empty", None)] if number % 5 == 0 else None,
            )
    return topic


def values(lines: str) -> list[int]:
    return sorted(json.loads(line)["number"] for line in lines.splitlines())


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


# Producing


def test_every_line_is_a_record(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"one\ntwo\r\n\nfour")
    run("produce", topic, "-p", "0")
    assert run("consume", topic, "-q") == "one\ntwo\n\nfour\n"


def test_keys_stand_before_a_separator(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"k1=v=1\nnone\n")
    run("produce", topic, "--key-separator", "=", status=1)
    assert "standard input, line 2: no '=' in it" in run.err  # type: ignore[attr-defined]
    assert run("consume", topic, "-q", "--key-separator", "|") == "k1|v=1\n"


def test_json_lines_come_back_as_they_went(run: Run, topic: str, tmp_path: Path) -> None:
    lines = [
        {"key": "k", "value": "text", "partition": 1, "timestamp": 5, "headers": [["a", "x"], ["a", None]]},
        {"key": None, "value_base64": "//8=", "partition": 1, "timestamp": 6},
        {"key": "tombstone", "value": None, "partition": 1, "timestamp": 7, "headers": [["b", {"base64": "/w=="}]]},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("produce", topic, str(tmp_path / "in.jsonl"), "--json")
    run("consume", topic, "--json", "-o", str(tmp_path / "out.jsonl"))
    back = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert back == [{"topic": topic, "offset": offset, **line} for offset, line in enumerate(lines)]
    (tmp_path / "again.jsonl").write_text((tmp_path / "out.jsonl").read_text())
    run("produce", topic, str(tmp_path / "again.jsonl"), "--json")
    assert len(run("consume", topic, "-q").splitlines()) == 6


def test_what_is_not_a_string_is_sent_as_json(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b'{"key": 7, "value": {"a": [1, null]}, "headers": {"h": "x"}}\n')
    run("produce", topic, "--json")
    line = json.loads(run("consume", topic, "-q", "--json"))
    assert (line["key"], line["value"], line["headers"]) == ("7", '{"a":[1,null]}', [["h", "x"]])


def test_empty_bytes_are_no_tombstone(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(
        monkeypatch,
        b'{"key_base64": "", "value_base64": "", "headers": {"h": {"base64": ""}}}\n{"value_base64": null}\n',
    )
    run("produce", topic, "-p", "0", "--json")
    empty, tombstone = map(json.loads, run("consume", topic, "-q", "--json").splitlines())
    assert (empty["key"], empty["value"], empty["headers"]) == ("", "", [["h", ""]])
    assert (tombstone["key"], tombstone["value"]) == (None, None)


def test_files_and_topics_may_stand_behind_options(run: Run, topic: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("first\n")
    (tmp_path / "two").write_text("second\n")
    run("produce", "-q", topic, "-p", "0", str(tmp_path / "one"), "--acks", "all", str(tmp_path / "two"))
    assert run("consume", "-q", topic) == "first\nsecond\n"
    printed = run("tail", topic, "--no-follow", topic, "--from-beginning", "--json")
    assert [json.loads(line)["value"] for line in printed.splitlines()] == ["first", "second"]


def test_what_json_has_no_number_for_is_written_as_text(
    run: Run, topic: str, node: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line must be JSON, whatever is in the records."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    with Producer(bootstrap_servers=node.bootstrap) as producer:
        producer.send(topic, struct.pack(">d", math.nan), partition=0)
    printed = run("tail", topic, "--from-beginning", "--no-follow", "--json", "--decode", "double")
    assert json.loads(printed, parse_constant=refuse)["value"] == "nan"
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        producer.send(topic, b'{"a": [NaN, 1e400]}', partition=1)
    printed = run("tail", topic, "--from-beginning", "--no-follow", "--json", "-p", "1")
    assert json.loads(printed, parse_constant=refuse)["value"] == '{"a": [NaN, 1e400]}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nothing", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"vaule": 1}', "no record has 'vaule'"),
        (b'{"partition": 1}', "neither a key nor a value"),
        (b'{"value": "x", "partition": "one"}', "partition must be a whole number"),
        (b'{"value_base64": "?"}', "value is not base64"),
        (b'{"value": "x", "headers": [1]}', "headers must be pairs"),
        (
            b'{"value": "x", "timestamp": 9999999999999999999}',
            "timestamp must be a whole number, from 0 on and below 2^63",
        ),
        (b'{"value": "x", "timestamp": -5}', "timestamp must be a whole number, from 0 on and below 2^63"),
        (b'{"value": "x", "partition": 2147483648}', "partition must be a whole number, from 0 on and below 2^31"),
        (b'{"value": "x", "value_base64": "eA=="}', "both value and value_base64"),
        pytest.param(b'{"value": ' + b"[" * 100_000, "not JSON: it is nested too deeply", id="nested"),
        (b'{"value": NaN}', "not JSON: JSON has no NaN"),
        (b'{"value": {"nested": [-Infinity]}}', "not JSON: JSON has no -Infinity"),
        (b'{"value": 1e400}', "not JSON: the number 1e400 is too large for a double"),
        (b'{"key": -1e400, "value": 1}', "not JSON: the number -1e400 is too large for a double"),
        (b'{"value": "x", "headers": {"h": 1e999}}', "not JSON: the number 1e999 is too large for a double"),
        (b'{"value": "\\ud83d"}', "half a character"),
        (b'{"value": {"nested": "\\ud83d"}}', "half a character"),
        (b'{"value": "x", "headers": {"h": "\\ud83d"}}', "half a character"),
    ],
)
def test_a_line_that_is_no_record_is_told(
    line: bytes, reason: str, run: Run, node: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, line)
    run("produce", "unused", "--json", status=1)
    assert f"standard input, line 1: {reason}" in run.err  # type: ignore[attr-defined]
    assert "1 failed" in run.err  # type: ignore[attr-defined]


def test_a_node_that_is_not_there_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = ["-b", "127.0.0.1:1", "--set", "default.api.timeout.ms=200", "--set", "request.timeout.ms=100"]
    assert main(["consume", "nothing", *nowhere]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("ottla consume: ")


@pytest.mark.parametrize(
    "words",
    [
        ["produce", "t", "--rate", "0"],
        ["produce", "t", "--rate", "-5"],
        ["produce", "t", "-p", "-1"],
        ["consume", "t", "--append"],
        ["consume", "t", "--json", "--key-separator", "="],
        ["consume", "t", "-n", "-5"],
        ["consume", "t", "--max", "0"],
        ["tail", "t", "--json", "--pretty"],
    ],
    ids=" ".join,
)
def test_an_option_that_would_do_nothing_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*words, "-b", "127.0.0.1:1"])
    assert f"ottla {words[0]}: error: " in capsys.readouterr().err


def test_settings_go_to_the_clients_that_have_them(run: Run, orders: str) -> None:
    each_its_own = ["--set", "linger.ms=1", "--set", "fetch.max.wait.ms=100", "--set", "request.timeout.ms=20000"]
    run("copy", orders, f"{orders}-copy", *each_its_own)
    assert everything(run, f"{orders}-copy") == everything(run, orders)
    run("tail", orders, "--set", "linger.ms=1", status=1)
    assert "this is one of the producer" in run.err  # type: ignore[attr-defined]
    run("copy", orders, f"{orders}-copy", "--set", "linger=1", status=1)
    assert "did you mean linger.ms, a setting of the producer?" in run.err  # type: ignore[attr-defined]


def test_settings_reach_the_admin_of_a_command(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["top", "--once", "-b", node.bootstrap, "--set", "sasl.mechanism=PLAIN", "--set", "security.protocol=SASL_SSL"]
    )
    assert "sasl.jaas.config" in capsys.readouterr().err


# Consuming


def test_a_group_follows_the_partitions_that_it_is_given(run: Run, orders: str) -> None:
    read = ["-q", "-g", f"{orders}-group", "--follow", "-p", "1", "--max", "5"]
    assert values(run("consume", orders, *read)) == [1, 3, 5, 7, 9]
    assert values(run("consume", orders, "-q", "-g", f"{orders}-group")) == [0, 2, 4, 6, 8]


def test_a_consumer_that_is_told_to_stop_has_committed_what_it_wrote(run: Run, node: Broker, orders: str) -> None:
    words = ["consume", orders, "-q", "-g", f"{orders}-group", "--follow", "-b", node.bootstrap]
    command = [sys.executable, "-m", "ottla.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 0
    assert run("consume", orders, "-q", "-g", f"{orders}-group") == ""


def test_a_group_goes_on_where_it_was(run: Run, orders: str) -> None:
    assert len(values(run("consume", orders, "-q", "-g", f"{orders}-group", "--max", "4"))) == 4
    assert len(values(run("consume", orders, "-q", "-g", f"{orders}-group"))) == 6
    assert run("consume", orders, "-q", "-g", f"{orders}-group") == ""


def test_a_partition_and_the_last_records(run: Run, orders: str) -> None:
    assert values(run("consume", orders, "-q", "-p", "1")) == [1, 3, 5, 7, 9]
    assert values(run("consume", orders, "-q", "-n", "1")) == [8, 9]
    assert values(run("consume", orders, "-q", "--since", "1700000007000")) == [7, 8, 9]


def test_consume_takes_the_option_of_tail_that_asks_for_all(run: Run, orders: str) -> None:
    assert values(run("consume", orders, "-q", "--from-beginning")) == values(run("consume", orders, "-q"))


def test_an_option_that_none_is_like_gets_no_other_name(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["produce", "orders", "--value", "x"], "--value x\n"),
        (["consume", "orders", "--from-beginnin"], "--from-beginnin (did you mean --from-beginning?)\n"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert capsys.readouterr().err.endswith(said)


def test_a_partition_that_is_not_there_is_told(run: Run, orders: str) -> None:
    run("consume", orders, "-p", "7", status=1)
    assert f"topic {orders} has no partition 7; it has 2" in run.err  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", ["consume", "tail"])
def test_a_topic_that_is_not_there_is_told_and_not_made(command: str, run: Run, node: Broker) -> None:
    node.create_topic(f"{command}-this-topic")
    for _ in range(2):
        run(command, f"{command}-tihs-topic", status=1)
        told = f"there is no topic {command}-tihs-topic (did you mean {command}-this-topic?)"
        assert told in run.err  # type: ignore[attr-defined]


# Tailing


def tailed(run: Run, topic: str, *words: str) -> list[int]:
    printed = run("tail", topic, "--from-beginning", "--no-follow", "--json", *words)
    return sorted(json.loads(line)["value"]["number"] for line in printed.splitlines())


def test_records_are_chosen_by_key_value_and_header(run: Run, orders: str) -> None:
    assert tailed(run, orders) == list(range(10))
    assert tailed(run, orders, "--key", "r-2$") == [2, 5, 8]
    assert tailed(run, orders, "--value", "order [34]") == [3, 4]
    assert tailed(run, orders, "--header", "trace") == [0, 5]
    assert tailed(run, orders, "--header", "trace=5") == [5]
    assert tailed(run, orders, "--header", "empty=.*") == []
    assert tailed(run, orders, "--key", "r-2$", "-p", "0") == [2, 8]


def test_records_are_chosen_by_time(run: Run, orders: str) -> None:
    printed = run("tail", orders, "--since", "1700000003000", "--until", "2023-11-14T22:13:26+00:00", "--json")
    assert sorted(json.loads(line)["value"]["number"] for line in printed.splitlines()) == [3, 4, 5]


def test_a_line_shows_where_a_record_is(run: Run, orders: str) -> None:
    [line] = run("tail", orders, "--from-beginning", "--no-follow", "-p", "0", "--max", "1").splitlines()
    assert f"{orders}-0@0  customer-0  " in line
    assert '{"number": 0, "name": "order 0"}  [trace=0 empty=null]' in line


def test_without_a_start_only_new_records_are_printed(run: Run, orders: str) -> None:
    assert run("tail", orders, "--no-follow") == ""
    assert len(run("tail", orders, "--no-follow", "-n", "2").splitlines()) == 4


def length(topic: str, content: bytes, headers: object) -> dict[str, int]:
    """A decoder, for `module:function`."""
    if content == b"{":
        raise ValueError("too short")
    return {"length": len(content)}


def test_a_decoder_of_ones_own(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"four\n{\n")
    run("produce", topic, "-p", "0")
    decoder = ["--decode", f"{__name__}:length"]
    first, second = run("tail", topic, "--from-beginning", "--no-follow", *decoder).splitlines()
    assert first.endswith('{"length": 4}')
    assert second.endswith("{ (not decoded: too short)")


def test_an_unknown_decoder_is_told(run: Run, topic: str) -> None:
    run("tail", topic, "--decode", "avor", status=1)
    assert "there is no decoder avor; there are auto, base64, hex, json, schema, text" in run.err  # type: ignore[attr-defined]


# Copying


def everything(run: Run, topic: str) -> list[dict[str, object]]:
    records = [json.loads(line) for line in run("consume", topic, "-q", "--json").splitlines()]
    return sorted((record | {"topic": ""} for record in records), key=lambda one: (one["partition"], one["offset"]))


def test_a_copy_keeps_partitions_keys_headers_and_timestamps(run: Run, orders: str) -> None:
    run("copy", orders, f"{orders}-copy")
    assert everything(run, f"{orders}-copy") == everything(run, orders)


@pytest.mark.parametrize("how", ["group", "state", "exactly-once"])
def test_a_copy_goes_on_where_it_was_stopped(how: str, run: Run, orders: str, tmp_path: Path) -> None:
    place = {
        "group": ["-g", f"{orders}-place"],
        "state": ["--state", str(tmp_path / "state.json")],
        "exactly-once": ["-g", f"{orders}-place", "--exactly-once"],
    }[how]
    copy = f"{orders}-copy"
    run("copy", orders, copy, *place, "--max", "4")
    run("copy", orders, copy, *place)
    run("copy", orders, copy, *place)
    copied = everything(run, copy)
    without_offsets = [{**one, "offset": 0} for one in copied]
    assert without_offsets == [{**one, "offset": 0} for one in everything(run, orders)]


def test_a_copy_that_keeps_offsets_goes_on_at_the_end_of_its_destination(run: Run, orders: str) -> None:
    copy = f"{orders}-copy"
    run("copy", orders, copy, "--keep-offsets", "--max", "4")
    run("copy", orders, copy, "--keep-offsets")
    run("copy", orders, copy, "--keep-offsets")
    assert everything(run, copy) == everything(run, orders)


def test_offsets_that_cannot_be_kept_are_refused_by_name(run: Run, node: Broker, orders: str) -> None:
    copy = f"{orders}-copy"
    node.create_topic(copy, partitions=2)
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        producer.send(copy, b"of another", partition=1)
    run("copy", orders, copy, "--keep-offsets", status=1)
    assert f"{copy}-1 is not a copy of {orders}-1: their records at 0 differ" in run.err  # type: ignore[attr-defined]
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.delete_records({TopicPartition(orders, 0): 1}).raise_first()
    run("copy", orders, f"{orders}-late", "--keep-offsets", status=1)
    assert f"{orders}-0 begins at offset 1" in run.err  # type: ignore[attr-defined]
    with pytest.raises(SystemExit, match="2"):
        main(["copy", orders, copy, "--keep-offsets", "--by-key"])


def test_a_gap_ends_a_copy_that_keeps_offsets(run: Run, node: Broker, topic: str) -> None:
    with Producer(bootstrap_servers=node.bootstrap, transactional_id=topic) as producer:
        for value in (b"first", b"second"):  # the marker of each transaction takes an offset
            with producer.transaction():
                producer.send(topic, value, partition=0)
    run("copy", topic, f"{topic}-copy", "--keep-offsets", status=1)
    assert f"{topic}-0 has no record at offset 1, the next is at 2" in run.err  # type: ignore[attr-defined]
    assert [one["value"] for one in everything(run, f"{topic}-copy")] == ["first"]


def test_a_state_of_another_copy_is_refused(run: Run, orders: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    run("copy", orders, f"{orders}-copy", "--state", state)
    run("copy", orders, f"{orders}-other", "--state", state, status=1)
    assert f"has the place of a copy whose destination was {orders}-copy (" in run.err  # type: ignore[attr-defined]


def test_fewer_partitions_need_keys_to_choose(run: Run, node: Broker, orders: str) -> None:
    node.create_topic(f"{orders}-small", partitions=1)
    run("copy", orders, f"{orders}-small", status=1)
    assert "add partitions, or use --by-key" in run.err  # type: ignore[attr-defined]
    run("copy", orders, f"{orders}-small", "--by-key")
    assert len(everything(run, f"{orders}-small")) == 10


def test_a_topic_is_copied_to_another_cluster(run: Run, orders: str) -> None:
    with Broker() as other:
        run("copy", orders, orders, "--to-server", other.bootstrap)
        assert main(["consume", orders, "-b", other.bootstrap, "-q"]) == 0


def test_a_killed_copy_neither_loses_nor_repeats_a_record(run: Run, node: Broker, topic: str, tmp_path: Path) -> None:
    """`kill -9` between its transactions, or within one."""
    count = 40_000
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, str(number).encode(), partition=number % 2)
    copy = f"{topic}-copy"
    node.create_topic(copy, partitions=2)
    place = ["--group", f"{topic}-place", "--exactly-once", "-q"]
    command = [sys.executable, "-m", "ottla.cli.main", "copy", topic, copy, "-b", node.bootstrap, *place]
    process = subprocess.Popen(command)
    try:
        partitions = [TopicPartition(copy, 0), TopicPartition(copy, 1)]
        with Consumer(bootstrap_servers=node.bootstrap) as consumer:
            while process.poll() is None:
                with suppress(KafkaError):
                    if sum(consumer.end_offsets(partitions).values()) > 1000:
                        break
        process.kill()
    finally:
        process.kill()
        process.wait(30)
    run("copy", topic, copy, *place)
    copied = run("consume", copy, "-q", "--set", "isolation.level=read_committed").splitlines()
    assert sorted(map(int, copied)) == list(range(count))


def test_progress_is_a_bar_where_the_end_is_known() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    progress = Progress("copied", stream=terminal)
    progress.total = 4
    progress._shown_s = 0.0
    progress.add(10)
    progress._shown_s = 0.0
    progress.show()
    assert "\u2588" * 6 + "\u2591" * 18 + "  25%  1 record copied" in terminal.getvalue()
    progress.end("nothing failed")
    assert terminal.getvalue().endswith(", nothing failed\n")


def test_where_no_terminal_is_only_the_last_line_is_printed() -> None:
    plain = io.StringIO()
    progress = Progress("copied", stream=plain)
    progress.add(1)
    progress.show()
    assert plain.getvalue() == ""
    progress.end()
    assert plain.getvalue().startswith("1 record copied, ")


@pytest.mark.parametrize("command", ["copy", "consume"])
def test_what_was_stopped_before_the_end_does_not_end_with_0(
    run: Run, orders: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poll(consumer: Consumer, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Consumer, "poll", poll)
    words = [f"{orders}-copy"] if command == "copy" else []
    run(command, orders, *words, status=130)
    assert "stopped before the end" in run.err  # type: ignore[attr-defined]
    run(command, orders, *words, "--follow")
    assert "stopped before the end" not in run.err  # type: ignore[attr-defined]
