"""`ottla pipelines`: what streaming queries of Spark do, from what they report to a topic.

How far a query is behind is looked up here and now, so that it is true of a query that stands still, too.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain, seconds
from ottla.config.scopes import Scope
from ottla.spark.pipeline_reports import ENDED, LIVE, REPORTS_TOPIC, PipelineReport

if TYPE_CHECKING:
    from ottla.base.ids import TopicPartition
    from ottla.client.blocking.consumer import Consumer

_SILENT_AFTER_MS: Final = 60_000
"""A query without data reports every ten seconds."""
_PATIENCE_S: Final = 30.0
_TITLES: Final = ("PIPELINE", "STATE", "BATCH", "ROWS/S", "LAG", "STATE ROWS", "STATE SIZE", "WATERMARK", "REPORTED")


class Pipeline(NamedTuple):
    report: PipelineReport
    state: str
    """As reported; `silent` if it should have reported since."""
    lag: int | None
    """Records that it has not read; None if its topics are not in this cluster."""
    age_ms: int


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    try:
        with Cluster.of(options, Scope.CONSUMER).consumer(enable_auto_commit=False) as consumer:
            while True:
                found = look(consumer, options.reports_topic, time.time_ns() // 1_000_000)
                _show(found, options)
                if options.watch is None:
                    return 0
                time.sleep(options.watch)
    except KeyboardInterrupt:
        return 0  # how it is left
    except FAILURES as problem:
        return complain("ottla pipelines", problem)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla pipelines",
        description="Shows the streaming queries that report with ottla.spark.report_pipelines(): what runs, its last "
        "batch and rate, how many records it is behind, its state, its watermark, and what it failed with.",
    )
    add_connection(parser)
    parser.add_argument("--all", action="store_true", help="those that have ended, too")
    parser.add_argument("--watch", type=seconds, metavar="S", help="again after so many seconds, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="a JSON object for each, a line")
    parser.add_argument(
        "--reports-topic", default=REPORTS_TOPIC, metavar="TOPIC", help=f"where they report (default: {REPORTS_TOPIC})"
    )
    return parser


def look(consumer: "Consumer", topic: str, now_ms: int) -> list[Pipeline]:
    """All queries that have reported, by name."""
    reports = _last_reports(consumer, topic)
    ends = _ends(consumer, reports)
    return [_pipeline(report, ends, now_ms) for report in sorted(reports, key=lambda one: one.label)]


def _last_reports(consumer: "Consumer", topic: str) -> list[PipelineReport]:
    from ottla.base.ids import TopicPartition
    from ottla.cli.failures import Terse

    info = consumer.list_topics().get(topic)
    if info is None:
        raise Terse(
            f"no pipeline has reported to this cluster: there is no topic {topic}. In the job, call "
            "ottla.spark.report_pipelines(spark, servers)"
        )
    partitions = [TopicPartition(topic, one.partition) for one in info]
    ends = consumer.end_offsets(partitions)
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    found: dict[bytes, PipelineReport] = {}
    deadline_s = time.monotonic() + _PATIENCE_S
    while any(consumer.position(one) < end for one, end in ends.items()):
        for record in consumer.poll(0.5):
            try:
                found[record.key or b""] = PipelineReport.decode(record.value or b"")
            except ValueError:
                found.pop(record.key or b"", None)
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"topic {topic} could not be read within {_PATIENCE_S:.0f} s")
    return list(found.values())


def _ends(consumer: "Consumer", reports: list[PipelineReport]) -> "dict[TopicPartition, int]":
    """The ends of all partitions of the topics that are read, as far as they are in this cluster."""
    from ottla.base.ids import TopicPartition

    there = consumer.list_topics()
    topics = {topic for report in reports if report.state != ENDED for topic in report.offsets if topic in there}
    partitions = [TopicPartition(topic, one.partition) for topic in topics for one in there[topic]]
    return consumer.end_offsets(partitions) if partitions else {}


def _pipeline(report: PipelineReport, ends: "dict[TopicPartition, int]", now_ms: int) -> Pipeline:
    age_ms = max(0, now_ms - report.at_ms)
    is_silent = report.state in LIVE and age_ms > _SILENT_AFTER_MS + 2 * report.batch_ms
    read = [
        max(0, end - report.offsets[partition.topic].get(str(partition.partition), 0))
        for partition, end in ends.items()
        if partition.topic in report.offsets
    ]
    return Pipeline(report, "silent" if is_silent else report.state, sum(read) if read else None, age_ms)


def _show(found: list[Pipeline], options: Namespace) -> None:
    shown = [one for one in found if options.all or one.state != ENDED]
    if options.json:
        import json

        for one in shown:
            more = {"state": one.state, "lag": one.lag, "age_ms": one.age_ms}
            print(json.dumps({**one.report._asdict(), **more}, ensure_ascii=False), flush=True)
        return
    if not shown:
        hidden = f"; {len(found)} ended, which --all shows" if found else ""
        print(f"No pipeline runs{hidden}.")
    else:
        rows = [_TITLES, *(_cells(one) for one in shown)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in shown:
        if one.report.error:
            print(f"{one.report.label}: {one.report.error}")
    if options.watch is not None:
        print()
    sys.stdout.flush()


def _cells(one: Pipeline) -> tuple[str, ...]:
    from ottla.cli.text_tables import duration, size

    report = one.report
    is_live = one.state in LIVE
    return (
        report.label,
        one.state,
        "-" if report.batch < 0 else str(report.batch),
        f"{report.rows_per_s:,.0f}" if is_live else "-",
        "-" if one.lag is None or report.state == ENDED else f"{one.lag:,}",
        f"{report.state_rows:,}" if report.state_rows else "-",
        size(report.state_bytes) if report.state_rows else "-",
        report.watermark or "-",
        f"{duration(one.age_ms / 1000)} ago" if one.age_ms else "now",
    )
