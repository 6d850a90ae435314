"""`kafka-delete-records`: forgets the records of partitions before an offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse
from ottla.cli.java_names import java_text
from ottla.cli.json_files import entries, field, read_json
from ottla.cli.options.checks import require, run_program
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import admin_of

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

PROGRAM: Final = Program(
    "kafka-delete-records",
    "This tool deletes the records of partitions that come before an offset.",
    (
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server(s) to use for bootstrapping"),
        Option(
            "offset-json-file",
            "REQUIRED: A JSON file that says before which offset, of which partitions:\n"
            '{"partitions": [{"topic": "clicks", "partition": 0, "offset": 100}], "version": 1}\n'
            "The offset -1 stands for the partition's end.",
            "String",
            "Offset json file path",
        ),
        Option(
            "command-config",
            "Properties file with settings of the admin.",
            "String",
            "command config property file path",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    require(given, "bootstrap-server", "offset-json-file")
    offsets = _offsets(read_json(given.text("offset-json-file")))
    with admin_of(given) as admin:
        _delete(admin, offsets)
    return 0


def _offsets(document: object) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    twice: list[TopicPartition] = []
    for entry in entries(document, "partitions"):
        partition = TopicPartition(field(entry, "topic", str), field(entry, "partition", int))
        if partition in offsets:
            twice.append(partition)
        offsets[partition] = field(entry, "offset", int)
    if twice:
        names = ", ".join(sorted({f"{one.topic}-{one.partition}" for one in twice}))
        raise Terse(f"Offset json file contains duplicate topic partitions: {names}")
    return offsets


def _delete(admin: Admin, offsets: dict[TopicPartition, int]) -> None:
    print("Executing records delete operation")
    deleted = admin.delete_records(offsets)
    print("Records delete operation completed:")
    errors = deleted.errors
    for partition in offsets:
        name = f"partition: {partition.topic}-{partition.partition}"
        if partition in errors:
            print(f"{name}\terror: {java_text(errors[partition])}")
        else:
            print(f"{name}\tlow_watermark: {deleted[partition]}")
