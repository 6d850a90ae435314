"""`kafka-get-offsets`: the first, last or latest offsets of partitions, or those by time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse, error_text
from ottla.cli.json_output import JSON, print_json
from ottla.cli.options.checks import require, run_program
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import admin_of
from ottla.cli.topics.choosing import topic_pattern

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

Filter = Callable[[TopicPartition], bool]

TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_WAYS: Final = " / ".join(f"{number} or {name}" for name, number in TIMES.items())

PROGRAM: Final = Program(
    "kafka-get-offsets",
    "This tool prints offsets of partitions, as topic:partition:offset.",
    (
        Option(
            "bootstrap-server",
            "REQUIRED: Brokers to begin with, as HOST1:PORT1,HOST2:PORT2.",
            "String",
            "HOST1:PORT1,...,HOST3:PORT3",
        ),
        Option("command-config", "Properties file with settings of the admin.", "String", "config file"),
        Option(
            "topic-partitions",
            "Which partitions, as a list of TOPIC:PARTITIONS. TOPIC is a regular expression, and any if it is left "
            "out. PARTITIONS is a number, a range 1-3 (without 3), 1- or -3, and all if it is left out.",
            "String",
            "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3 ",
        ),
        Option(
            "topic", "Topics whose offsets to print: a name or a regular expression. Default: all.", "String", "topic"
        ),
        Option("partitions", "Partitions of these topics, as 0,1,2. Default: all.", "String", "partition ids"),
        Option(
            "time",
            "Which offset: a time in milliseconds finds the first record that is not older. Where there is none, no "
            "line is printed.",
            "String",
            f"<timestamp> / {_WAYS}",
            default="latest",
        ),
        Option("exclude-internal-topics", "Leave the cluster's own topics out."),
        JSON,
    ),
)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run, before_failure="Error occurred: ")


def run(given: Given) -> int:
    require(given, "bootstrap-server")
    if "topic-partitions" in given and ("topic" in given or "partitions" in given):
        raise Terse("--topic-partitions cannot be used with --topic or --partitions")
    time = time_of(given.text("time"))
    is_wanted = _filter(given)
    with admin_of(given) as admin:
        offsets = _offsets(admin, is_wanted, time, include_internal="exclude-internal-topics" not in given)
    if "json" in given:
        print_json(
            [{"topic": one.topic, "partition": one.partition, "offset": offset} for one, offset in offsets.items()]
        )
        return 0
    for partition, offset in offsets.items():
        print(f"{partition.topic}:{partition.partition}:{offset}")
    return 0


def _offsets(admin: Admin, is_wanted: Filter, time: int, *, include_internal: bool) -> dict[TopicPartition, int]:
    names = [topic.name for topic in admin.list_topics(include_internal=include_internal)]
    described = admin.describe_topics(names).succeeded if names else {}
    partitions = [TopicPartition(name, one.partition) for name, topic in described.items() for one in topic.partitions]
    wanted = sorted(filter(is_wanted, partitions), key=lambda partition: f"{partition.topic}-{partition.partition}")
    if not wanted:
        raise Terse("Could not match any topic-partitions with the specified filters")
    found = admin.list_offsets(dict.fromkeys(wanted, time))
    for partition, problem in found.errors.items():
        name = f"{partition.topic}-{partition.partition}"
        print(f"Skip getting offsets for topic-partition {name} due to error: {error_text(problem)}", file=sys.stderr)
    return {partition: one.offset for partition, one in found.succeeded.items() if one.offset is not None}


def time_of(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise Terse(
            f"Malformed time argument {text}. Please use {_WAYS}, or a specified long format timestamp"
        ) from None


def _filter(given: Given) -> Filter:
    rules = given.get("topic-partitions")
    if rules is not None:
        filters = [parse_rule(rule) for rule in rules.split(",")]
        return lambda partition: any(matches(partition) for matches in filters)
    topic = given.get("topic")
    has_topic = topic_pattern(topic) if topic is not None else (lambda name: True)
    has_partition = _partition_list(given.get("partitions"))
    return lambda partition: has_topic(partition.topic) and has_partition(partition.partition)


def parse_rule(rule: str) -> Filter:
    """`TOPIC:PARTITIONS`; either half may be left out."""
    topic, colon, partitions = rule.partition(":")
    has_topic = topic_pattern(topic) if topic else (lambda name: True)
    low, dash, high = partitions.partition("-")
    if not all(word.isdecimal() for word in (low, high) if word) or ((colon and not (low or dash)) and partitions):
        raise Terse(f"Invalid rule specification: {rule}")
    first = int(low) if low else 0
    last = high if dash else low and str(first + 1)
    end = int(last) if last else 2**31
    return lambda partition: has_topic(partition.topic) and first <= partition.partition < end


def _partition_list(text: str | None) -> Callable[[int], bool]:
    if not text:
        return lambda partition: True
    try:
        wanted = frozenset(int(word) for word in text.split(","))
    except ValueError:
        raise Terse(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None
    return wanted.__contains__
