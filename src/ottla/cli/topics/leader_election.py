"""`kafka-leader-election`: makes preferred replicas lead again, or, at the cost of records, any replica."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse
from ottla.cli.java_names import java_text
from ottla.cli.json_files import entries, field, read_json
from ottla.cli.options.checks import run_program
from ottla.cli.options.reading import Given, OptionError
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import open_admin

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

TIMEOUT_S: Final = 30.0
_SCOPES: Final = ("topic", "all-topic-partitions", "path-to-json-file")

PROGRAM: Final = Program(
    "kafka-leader-election",
    "This tool elects leaders of partitions: the preferred replicas, or any replica that is left.",
    (
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "host:port"),
        Option(
            "admin.config",
            "(DEPRECATED) Properties file with settings of the admin; use --command-config.",
            "String",
            "config file",
        ),
        Option("command-config", "Properties file with settings of the admin.", "String", "Config file"),
        Option(
            "path-to-json-file",
            'A JSON file with the partitions:\n{"partitions": [{"topic": "clicks", "partition": 0}]}\n'
            "Not with --all-topic-partitions or --topic.",
            "String",
            "Path to JSON file",
        ),
        Option(
            "topic", "Topic of the partition. Not with --path-to-json-file or --all-topic-partitions.", "String",
            "topic name",
        ),
        Option("partition", "The partition; REQUIRED with --topic.", "Integer", "partition id"),
        Option(
            "all-topic-partitions",
            "All partitions for which such an election makes sense. Not with --topic or --path-to-json-file.",
        ),
        Option(
            "election-type",
            'REQUIRED: "preferred" makes the first replica lead where another one does; "unclean" makes any replica '
            "lead where none does, and loses the records that it does not have.",
            "[PREFERRED,UNCLEAN]",
            "election type",
        ),
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    election = _checked(given)
    partitions = _partitions(given)
    config_file = given.get("command-config") or given.get("admin.config")
    if "admin.config" in given:
        print("Option --admin.config has been deprecated and will be removed in a future version. "
              "Use --command-config instead.")  # fmt: skip
    with open_admin(given.get("bootstrap-server"), config_file=config_file) as admin:
        _elect(admin, election, partitions)
    return 0


def _checked(given: Given) -> str:
    missing = [name for name in ("bootstrap-server", "election-type") if name not in given]
    if missing:
        raise Terse(f"Missing required option(s): {', '.join(missing)}")
    if "command-config" in given and "admin.config" in given:
        raise Terse("Options admin.config and command-config are mutually exclusive")
    scopes = [name for name in _SCOPES if name in given]
    if len(scopes) != 1:
        raise Terse(f"One and only one of the following options is required: {', '.join(_SCOPES)}")
    if "topic" in given and "partition" not in given:
        raise Terse("Missing required option(s): partition")
    if "topic" not in given and "partition" in given:
        raise Terse("Option partition is only allowed if topic is used")
    election = given.text("election-type").upper()
    if election not in ("PREFERRED", "UNCLEAN"):
        raise OptionError(f"Cannot parse argument '{given.text('election-type')}' of option election-type")
    return election


def _partitions(given: Given) -> list[TopicPartition] | None:
    """None stands for all of them."""
    if "topic" in given:
        return [TopicPartition(given.text("topic"), given.integer("partition"))]
    if "path-to-json-file" not in given:
        return None
    document = read_json(given.text("path-to-json-file"))
    partitions = [
        TopicPartition(field(entry, "topic", str), field(entry, "partition", int))
        for entry in entries(document, "partitions")
    ]
    if twice := sorted({one for one in partitions if partitions.count(one) > 1}):
        raise Terse(f"Replica election data contains duplicate partitions: [{_listed(twice)}]")
    return partitions


def _elect(admin: Admin, election: str, partitions: list[TopicPartition] | None) -> None:
    from ottla.client.admin.replicas import ElectionType
    from ottla.client.errors import ElectionNotNeeded

    results = admin.elect_leaders(ElectionType[election], partitions, timeout=TIMEOUT_S)
    errors = results.errors
    not_needed = [one for one, error in errors.items() if isinstance(error, ElectionNotNeeded)]
    failed = {one: error for one, error in errors.items() if not isinstance(error, ElectionNotNeeded)}
    if results.succeeded:
        print(f"Successfully completed leader election ({election}) for partitions {_listed(results.succeeded)}")
    if not_needed:
        print(f"Valid replica already elected for partitions {_listed(not_needed)}")
    for partition, error in failed.items():
        name = f"{partition.topic}-{partition.partition}"
        print(f"Error completing leader election ({election}) for partition: {name}: {java_text(error)}")
    if failed:
        raise Terse(f"{len(failed)} replica(s) could not be elected")


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{partition.topic}-{partition.partition}" for partition in partitions)
