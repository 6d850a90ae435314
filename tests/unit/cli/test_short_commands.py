"""`ottla topic`, `ottla group`, `ottla config` and completion against a node."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla import Admin, Producer, TopicPartition
from ottla.cli.completion import candidates, complete
from ottla.cli.main import COMMANDS, main
from ottla.cli.records.record_format import record_format
from ottla.cli.short.group import Target, target
from ottla.records.kernel import ConsumerRecord
from ottla.testing import Broker

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(node: Broker, capfd: pytest.CaptureFixture[str]) -> Run:
    """The lines that a command prints; of one that fails, what it says about that."""

    def command(*words: str, status: int = 0) -> list[str]:
        assert main([*words, "-b", node.bootstrap]) == status
        out, err = capfd.readouterr()
        return (err if status else out).splitlines()

    return command


@pytest.fixture
def topic(node: Broker, request: pytest.FixtureRequest) -> str:
    """Two partitions, with three records and one."""
    name = str(request.node.name)
    node.create_topic(name, partitions=2)
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for value, partition in ((b"a", 0), (b"b", 0), (b"c", 0), (b"d", 1)):
            producer.send(name, value, partition=partition)
    return name


def test_a_topic_from_its_creation_to_its_end(run: Run) -> None:
    assert run("topic", "create", "life", "-p", "3", "-r", "1", "-c", "retention.ms=1000") == [
        "created life with 3 partitions, 1 replica"
    ]
    assert run("topic", "create", "life", "--if-not-exists") == ["life is there already"]
    [line] = run("topic", "create", "life", status=1)
    assert line.startswith("ottla topic create: Topic 'life' already exists")
    assert run("topic", "list", "^life$") == [
        "TOPIC  PARTITIONS  REPLICAS  STATE",
        "life            3         1  ok",
    ]
    assert run("topic", "alter", "life", "-p", "4") == ["life has 4 partitions now"]
    assert run("topic", "delete", "life") == ["deleted life"]
    assert run("topic", "delete", "life", "--if-exists") == []
    assert run("topic", "delete", "life", status=1) == ["ottla topic delete: there is no topic life"]


def test_a_topic_is_described_with_its_settings_and_offsets(run: Run, topic: str) -> None:
    run("config", "set", "topic", topic, "retention.ms=1000")
    lines = run("topic", "describe", topic)
    assert lines[0].startswith(f"{topic}  ")
    assert "  retention.ms=1000" in lines
    assert lines[-3:] == [
        "PARTITION  LEADER  REPLICAS  ISR  START  END",
        "        0       1         1    1      0    3",
        "        1       1         1    1      0    1",
    ]
    [told] = json.loads("\n".join(run("topic", "describe", topic, "--json")))
    assert told["config"]["retention.ms"] == "1000"
    assert told["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "replicas": [1],
        "isr": [1],
        "start_offset": 0,
        "end_offset": 1,
    }


def test_a_mistyped_topic_is_told_with_the_nearest(run: Run, topic: str) -> None:
    assert run("topic", "describe", topic + "x", status=1) == [
        f"ottla topic describe: there is no topic {topic}x (did you mean {topic}?)"
    ]


def test_a_group_is_described_moved_and_deleted(run: Run, topic: str, node: Broker) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.alter_consumer_group_offsets("shop", {TopicPartition(topic, 0): 1}).raise_first()
    assert "shop   Classic  Empty" in run("group", "list", "^shop$")
    assert run("group", "describe", "shop")[0] == "shop  Empty, 0 members, lag 2"
    assert run("group", "describe", "shop")[2].split() == [topic, "0", "1", "3", "2", "-"]
    assert run("group", "seek", "shop", "--to", "latest", "--dry-run")[1].split() == [topic, "0", "1", "3"]
    assert run("group", "seek", "shop", "--to", "+1")[1].split() == [topic, "0", "1", "2"]
    moved = [line.split() for line in run("group", "seek", "shop", "--to", "earliest", "-t", topic)[1:]]
    assert moved == [[topic, "0", "2", "0"], [topic, "1", "-", "0"]]
    assert run("group", "seek", "shop", "--to", "77", "-t", f"{topic}:1")[1].split() == [topic, "1", "0", "1"]
    [told] = json.loads("\n".join(run("group", "describe", "shop", "--json")))
    assert [one["lag"] for one in told["partitions"]] == [3, 0]
    assert run("group", "delete", "shop") == ["deleted shop"]
    assert run("group", "describe", "shop", status=1) == ["ottla group describe: there is no group shop"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("earliest", Target(time_ms=-2)),
        ("latest", Target(time_ms=-1)),
        ("15", Target(offset=15)),
        ("-3", Target(shift=-3)),
        ("1772366400000", Target(time_ms=1772366400000)),
    ],
)
def test_where_a_group_can_be_sent(text: str, found: Target) -> None:
    assert target(text) == found


def test_settings_are_printed_and_changed(run: Run, topic: str) -> None:
    assert run("config", "set", "topic", topic, "retention.ms=5000", "max.message.bytes=2000") == [
        "retention.ms=5000",
        "max.message.bytes=2000",
    ]
    assert "retention.ms          5000  dynamic topic" in run("config", "get", "topic", topic)
    assert run("config", "unset", "topic", topic, "retention.ms") == ["retention.ms is as it is by default"]
    assert json.loads("\n".join(run("config", "get", "topic", topic, "retention.ms", "--json"))) == {
        "retention.ms": {"value": "604800000", "source": "default"}
    }
    assert run("config", "get", "topic", topic, "retenton.ms", status=1) == [
        "ottla config get: there is no setting retenton.ms (did you mean retention.ms?)"
    ]


def test_settings_of_all_brokers_have_no_name(run: Run) -> None:
    assert run("config", "set", "brokers", "log.retention.ms=777777") == ["log.retention.ms=777777"]
    assert run("config", "get", "broker", "1", "log.retention.ms")[1].split()[:2] == ["log.retention.ms", "777777"]
    run("config", "unset", "brokers", "log.retention.ms")
    assert run("config", "get", "broker", "7", status=1) == ["ottla config get: there is no broker 7"]


# The format of kcat


def test_a_format_has_all_that_a_record_has() -> None:
    record = ConsumerRecord("orders", 3, 17, 1000, b"k", b"val", (("a", b"1"), ("b", None)))
    text = r"%t/%p@%o %T %K:%k %S:%s [%h] %%\t\x41\n"
    assert record_format(text)(record) == b"orders/3@17 1000 1:k 3:val [a=1,b=NULL] %\tA\n"
    assert record_format("%R%s")(record) == b"\0\0\0\3val"


def test_null_has_no_bytes_and_the_length_minus_one() -> None:
    assert record_format("%K:%k %S:%s")(ConsumerRecord("t", 0, 0, 0, None, None)) == b"-1: -1:"


@pytest.mark.parametrize("text", ["%x", "%", r"\q", r"\xZZ", "\\"])
def test_what_is_no_format_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tail", "orders", "--format", text])
    assert "argument --format" in capsys.readouterr().err


def test_records_from_an_offset_in_a_format(run: Run, topic: str) -> None:
    form = r"%p:%o=%s\n"
    assert sorted(run("consume", topic, "--offset", "1", "--format", form, "-q")) == ["0:1=b", "0:2=c"]
    assert run("tail", topic, "-p", "0", "--offset", "2", "--no-follow", "--format", form) == ["0:2=c"]


# Completion


def test_commands_options_and_choices_are_completed() -> None:
    assert candidates(["ottla", "to"]) == ["top", "topic", "topics"]
    assert candidates(["ottla", "topic", ""]) == ["alter", "create", "delete", "describe", "list"]
    assert candidates(["ottla", "topic", "create", "new", "--p"]) == ["--partitions"]
    assert candidates(["ottla", "cluster", "start", "--security", "sasl"]) == ["sasl_plaintext", "sasl_ssl"]
    assert candidates(["kafka-topics.sh", "--cre"]) == ["--create"]
    assert candidates(["ottla", "nonsense", ""]) == []


def test_topics_and_groups_are_asked_of_the_cluster(node: Broker, topic: str) -> None:
    assert candidates(["ottla", "tail", "-b", node.bootstrap, topic[:9]]) == [topic]
    assert candidates(["kafka-topics", "--bootstrap-server", node.bootstrap, "--topic", topic[:9]]) == [topic]
    assert candidates(["ottla", "topic", "describe", "-b", "127.0.0.1:1", ""]) == [], "nobody answers"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("version", "completion")])
def test_every_command_can_be_completed(command: str) -> None:
    found = candidates(["ottla", command, "-"]) + candidates(["ottla", command, ""])
    assert found, "nothing follows it"


def test_bash_completes(node: Broker, topic: str, tmp_path: Path) -> None:
    """The script as it is printed, with `ottla` as this interpreter runs it."""
    ottla = tmp_path / "ottla"
    ottla.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
    ottla.chmod(0o755)
    program = f"""
        PATH={tmp_path}:$PATH
        eval "$(ottla completion bash)"
        COMP_LINE="ottla tail -b {node.bootstrap} {topic[:9]}" COMP_POINT=${{#COMP_LINE}}
        COMP_LINE="ottla tail -b {node.bootstrap} {topic[:9]}"; COMP_POINT=${{#COMP_LINE}}
        _ottla_complete
        echo "${{COMPREPLY[@]}}"
    """
    printed = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout == f"{topic}\n"


def test_a_line_with_an_open_quote_completes_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(["--line", "ottla tail 'ord"]) == 0
    assert capsys.readouterr().out == ""
