"""`ottla top`: what it makes of two looks at a cluster, and what it prints of a node."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from ottla import Consumer, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.cli.text_tables import duration, size
from ottla.cli.top.rates import view_of
from ottla.cli.top.sampling import GroupSample, Sample, TopicSample
from ottla.cli.top.tables import GROUP_COLUMNS, TOPIC_COLUMNS, fitted, plain
from ottla.testing import Broker

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW_MS = 1_700_000_100_000


def sample(at_s: float, ends: dict[int, int], committed: dict[TopicPartition, int], size_bytes: int = 0) -> Sample:
    topic = TopicSample(2, {0: 5, 1: 0}, ends, size_bytes)
    return Sample(at_s, 1, {"orders": topic}, {"billing": GroupSample("Stable", 2, committed)})


def test_rates_are_differences_over_time() -> None:
    before = sample(10.0, {0: 100, 1: 50}, {P0: 40, P1: 50}, 1000)
    now = sample(12.0, {0: 300, 1: 150}, {P0: 140, P1: 150}, 5000)
    view = view_of(before, now, {(P0, 140): NOW_MS - 30_000}, NOW_MS)
    [topic], [group] = view.topics, view.groups
    assert (topic.records, topic.records_per_second, topic.bytes_per_second) == (445, 150.0, 2000.0)
    assert (group.lag_records, group.lag_seconds, group.records_per_second) == (160, 30.0, 100.0)


def test_a_group_that_has_read_all_is_not_behind() -> None:
    now = sample(1.0, {0: 9, 1: 9}, {P0: 9, P1: 9})
    assert view_of(None, now, {}, NOW_MS).groups[0][4:] == (0, 0.0, None)


def test_the_time_of_a_record_that_was_not_found_is_not_known() -> None:
    now = sample(1.0, {0: 9, 1: 9}, {P0: 8, P1: 9})
    view = view_of(None, now, {}, NOW_MS)
    assert view.groups[0].lag_seconds is None
    assert "?" in plain(view)


def test_offsets_that_were_reset_are_no_throughput() -> None:
    before, now = sample(1.0, {0: 9, 1: 9}, {P0: 9, P1: 9}), sample(2.0, {0: 9, 1: 9}, {P0: 0, P1: 9})
    assert view_of(before, now, {}, NOW_MS).groups[0].records_per_second == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.4, "< 1 s"), (59, "59 s"), (61, "1 m 01 s"), (3661, "1 h 01 m"), (200_000, "2 d 7 h")],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes_are_for_people() -> None:
    assert [size(count) for count in (0, 999, 1500, 2.5e6, 3e9, 4e12)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "3.0 GB",
        "4.0 TB",
    ]


def test_a_view_is_drawn_on_a_terminal() -> None:
    import io

    from rich.console import Console

    from ottla.cli.top.screen import drawn

    now = sample(1.0, {0: 9, 1: 9}, {P0: 0, P1: 9})
    written = io.StringIO()
    console = Console(file=written, width=100, force_terminal=True)
    console.print(drawn(view_of(None, now, {(P0, 0): NOW_MS - 61_000}, NOW_MS), "ottla top", 100))
    assert "billing" in written.getvalue()
    assert "1 m 01 s" in written.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_tables_fit_the_terminal_and_keep_what_matters(width: int) -> None:
    name = "orders-of-the-european-warehouses-2026"
    topics = [(name, "12", "1,234,567", "12,345", "123.4 GB", "12.3 MB/s", "3 under-replicated"), ("t", *"123456")]
    groups = [(name, "PreparingRebalance", "12", "3", "1,234,567", "2 h 05 m", "12,345")]
    for columns, rows, kept in ((TOPIC_COLUMNS, topics, "3 under-replicated"), (GROUP_COLUMNS, groups, "2 h 05 m")):
        fit = fitted(columns, rows, width)
        widths = [max(map(len, cells)) for cells in zip(fit.titles, *fit.rows, strict=True)]
        assert sum(widths) + 2 * (len(widths) - 1) <= max(width, 46)
        assert kept in fit.rows[0]
        assert fit.rows[0][0].rstrip("…") == name[: len(fit.rows[0][0].rstrip("…"))]
    assert fitted(TOPIC_COLUMNS, topics, 200).rows == topics


@pytest.mark.slow
def test_q_leaves(node: Broker) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "ottla.cli.main", "top", "-b", node.bootstrap, "--interval", "3600"]
    running = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    try:
        seen = b""
        while b"asking the cluster" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, b"xq")
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait()
        os.close(ours)


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    """Two groups that stopped at different places of the same topic."""
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        began_ms = time.time_ns() // 1_000_000 - 60_000
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(20):
                producer.send("orders", b"x" * 100, partition=number % 2, timestamp_ms=began_ms + number * 1000)
        for group, offset in (("early", 2), ("late", 7), ("done", 10)):
            with Consumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False) as consumer:
                consumer.assign([P0, P1])
                consumer.commit({P0: offset, P1: 10})
        yield broker


def test_scripts_get_json(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "-b", node.bootstrap, "--once", "--json", "--interval", "0.1"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["brokers"] == 1
    [topic] = view["topics"]
    assert (topic["topic"], topic["partitions"], topic["records"]) == ("orders", 2, 20)
    assert topic["size_bytes"] > 2000
    groups = {group["group"]: group for group in view["groups"]}
    assert {name: group["lag_records"] for name, group in groups.items()} == {"early": 8, "late": 3, "done": 0}
    assert groups["done"]["lag_seconds"] == 0
    # The record at offset 2 of partition 0 is ten seconds older than that at offset 7.
    assert groups["early"]["lag_seconds"] - groups["late"]["lag_seconds"] == pytest.approx(10)
    assert groups["early"]["lag_seconds"] > 50


def test_people_get_tables(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "-b", node.bootstrap, "--once", "--interval", "0.1", "--group", "^l"]) == 0
    topics, groups = capsys.readouterr().out.split("\n\n")
    assert topics.splitlines()[0].split() == ["TOPIC", "PARTITIONS", "RECORDS", "RECORDS/S", "ON", "DISK", "GROWTH"]
    [_, row] = groups.splitlines()
    assert row.split()[:5] == ["late", "Empty", "0", "1", "3"]


def test_names_are_chosen_by_patterns(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--topic", "nothing", "--internal", "--group", "early"]
    assert main(["top", "-b", node.bootstrap, "--once", "--json", "--interval", "0.1", *words]) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["topics"] == []
    assert [group["lag_records"] for group in view["groups"]] == [0]
