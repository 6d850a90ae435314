"""`ottla pipelines`: what it makes of the reports of streaming queries. tests/spark has the listener behind them."""

import json

import pytest

from ottla import Producer
from ottla.cli.main import main
from ottla.spark.pipeline_reports import PipelineReport
from ottla.testing import Broker

NOW_MS = 1_700_000_000_000
REPORT = PipelineReport(
    "3f6a", "run", "bids to Parquet", "job", "host", "running", NOW_MS, NOW_MS - 5000, batch=7, rows=100,
    rows_per_s=1234.5, offsets={"bids": {"0": 4}}, state_rows=12, state_bytes=3_400_000,
    watermark="2026-11-17T13:00:00.000Z",
)  # fmt: skip


@pytest.fixture
def tell(ottla_broker: Broker, ottla_topic: str) -> object:
    def tell(*values: tuple[str, bytes]) -> None:
        with Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
            for key, value in values:
                producer.send(ottla_topic, value, key=key.encode())

    return tell


def test_a_report_is_read_as_it_was_written() -> None:
    assert PipelineReport.decode(REPORT.encode()) == REPORT
    newer = json.loads(REPORT.encode()) | {"more": 1}
    assert PipelineReport.decode(json.dumps(newer).encode()) == REPORT
    with pytest.raises(ValueError, match="not a report"):
        PipelineReport.decode(b"[]")


@pytest.mark.slow
def test_the_last_report_of_each_query_is_shown(
    ottla_broker: Broker, ottla_topic: str, tell: object, capsys: pytest.CaptureFixture[str]
) -> None:
    read = ottla_topic + "-read"
    ottla_broker.create_topic(read)
    with Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        for number in range(10):
            producer.send(read, b"%d" % number)
    report = REPORT._replace(offsets={read: {"0": 4}})
    failed = REPORT._replace(id="9c", name=None, state="failed", offsets={}, error="OptionError: option topic is empty")
    ended = REPORT._replace(id="77", name="over", state="ended")
    tell(  # type: ignore[operator]
        ("3f6a", report._replace(batch=6).encode()),
        ("3f6a", report.encode()),
        ("9c", failed.encode()),
        ("77", ended.encode()),
        ("junk", b"{"),
    )
    options = ["pipelines", "-b", ottla_broker.bootstrap, "--reports-topic", ottla_topic]
    assert main(options) == 0
    titles, *rows, error = capsys.readouterr().out.splitlines()
    assert titles.split()[:5] == ["PIPELINE", "STATE", "BATCH", "ROWS/S", "LAG"]
    # It was reported long ago, and a query that runs reports often.
    assert [row.split("  ")[0] for row in rows] == ["9c", "bids to Parquet"]
    assert rows[1].split("  ", 1)[1].split()[:6] == ["silent", "7", "-", "6", "12", "3.4"]
    assert error == "9c: OptionError: option topic is empty"
    assert main([*options, "--json", "--all"]) == 0
    found = {one["id"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found.keys() == {"3f6a", "9c", "77"}
    assert (found["3f6a"]["lag"], found["3f6a"]["state"], found["3f6a"]["watermark"]) == (6, "silent", REPORT.watermark)


def test_a_cluster_without_reports_says_what_to_call(
    ottla_broker: Broker, ottla_topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipelines", "-b", ottla_broker.bootstrap, "--reports-topic", ottla_topic + "-none"]) == 1
    assert "ottla.spark.report_pipelines(spark, servers)" in capsys.readouterr().err
