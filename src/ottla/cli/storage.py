"""`kafka-storage` and `ottla storage`: formats data directories and tells what they are, as Apache Kafka's tool does.

Options, output and exit codes are those of Apache Kafka 4.3.1. Where it differs:

- What is wrong is one line on stderr, not a stack trace.
- Keys derived from passwords (`--add-scram`) are not printed.
- Directories are formatted in the order of their names; Kafka's in that of a hash table.
- metadata.version 31, which Kafka 4.3 has but does not support yet, is unknown.
- An id that is twice in `controller.quorum.voters` is refused.
- `--help` is a page of ours.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import NoReturn

from ottla.base.errors import OttlaError
from ottla.base.ids import Uuid, random_uuid, uuid_text
from ottla.cli.feature_lines import dependencies, version_mapping
from ottla.config.parse import Values
from ottla.config.properties import read_properties
from ottla.log.disk import OsDisk
from ottla.machines.metadata.image.features import METADATA_VERSIONS
from ottla.machines.raft.voters import VoterSet
from ottla.node.clock import SystemClock, java_date
from ottla.node.config import read_config
from ottla.node.listeners import parse_listeners
from ottla.node.storage.format_features import parse_level, parse_release
from ottla.node.storage.format_voters import parse_initial_controllers
from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage
from ottla.node.storage.meta_properties import new_directory_id
from ottla.node.storage.storage_info import describe_storage

LATEST = METADATA_VERSIONS[max(METADATA_VERSIONS)].name
OLDEST = METADATA_VERSIONS[min(METADATA_VERSIONS)].name


class StorageToolError(OttlaError):
    """Options that do not go together, or with the settings."""


class _Parser(ArgumentParser):
    """Bad usage is exit code 1, as in Kafka."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    tool = "kafka-storage" if os.path.basename(sys.argv[0]).startswith("kafka-") else "ottla storage"
    options = argument_parser(tool).parse_args(arguments)
    try:
        return _COMMANDS[options.command](options)
    except BrokenPipeError:
        raise  # the reader of our output has left: no failure of ours
    except (OttlaError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1


def argument_parser(tool: str) -> ArgumentParser:
    parser = _Parser(prog=tool, description="Formats data directories, and tells what they are.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)

    info = commands.add_parser("info", help="tell what the node's directories are, and what is wrong with them")
    _add_config(info)

    form = commands.add_parser("format", help="format the node's directories", allow_abbrev=False)
    _add_config(form)
    form.add_argument("--cluster-id", "-t", required=True, help="the cluster's id; random-uuid makes one")
    form.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        help="a credential to begin with: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'",
    )
    form.add_argument("--ignore-formatted", "-g", action="store_true", help="leave formatted directories as they are")
    form.add_argument("--release-version", "-r", help=f"the release whose features to use, {OLDEST} to {LATEST}")
    form.add_argument("--feature", "-f", action="append", default=[], help="a feature's level, such as group.version=1")
    quorum = form.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="this controller is the first and only voter")
    quorum.add_argument("--no-initial-controllers", "-N", action="store_true", help="the voters are found elsewhere")
    quorum.add_argument("--initial-controllers", "-I", help="the first voters: id@hostname:port:directory,…")

    mapping = commands.add_parser("version-mapping", help="print the levels of features that a release has")
    mapping.add_argument("--release-version", "-r", help=f"the release, {OLDEST} to {LATEST}")

    dependencies = commands.add_parser("feature-dependencies", help="print what a level of a feature needs")
    dependencies.add_argument("--feature", "-f", action="append", required=True, help="such as group.version=1")

    commands.add_parser("random-uuid", help="print a random id")
    return parser


def _add_config(parser: ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, help="the node's properties file")


def read_node_config(path: str) -> Values:
    """Checked as at the start of the node: a directory is not formatted for one that could not start."""
    with open(path, "rb") as file:
        return read_config(read_properties(file.read())).values


def directories_of(values: Values) -> tuple[list[str], str]:
    """All directories of the node, and the one with the metadata."""
    log_dirs = values.list("log.dirs") if values["log.dirs"] else values.list("log.dir")
    metadata = str(values["metadata.log.dir"] or log_dirs[0])
    return sorted({os.path.abspath(path) for path in (*log_dirs, metadata)}), os.path.abspath(metadata)


def run_info(options: Namespace) -> int:
    directories, _ = directories_of(read_node_config(options.config))
    lines, is_sound = describe_storage(OsDisk(), directories)
    print("\n".join(lines))
    return 0 if is_sound else 1


def run_format(options: Namespace) -> int:
    values = read_node_config(options.config)
    directories, metadata_directory = directories_of(values)
    has_static_voters = bool(values.list("controller.quorum.voters"))
    initial_voters = _initial_voters(options, values)
    if initial_voters is not None and has_static_voters:
        raise StorageToolError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    is_controller = "controller" in values.list("process.roles")
    if is_controller and not (has_static_voters or initial_voters or options.no_initial_controllers):
        raise StorageToolError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    plan = FormatPlan(
        cluster_id=options.cluster_id,
        node_id=values.integer("node.id"),
        directories=directories,
        metadata_directory=metadata_directory,
        release=parse_release(options.release_version) if options.release_version else None,
        features=dict(map(parse_level, options.feature)),
        scram=options.add_scram,
        initial_voters=initial_voters,
        has_dynamic_voters=not has_static_voters and bool(initial_voters or options.no_initial_controllers),
        ignore_formatted=options.ignore_formatted,
    )
    format_storage(plan, _surroundings(), print)
    return 0


def _initial_voters(options: Namespace, values: Values) -> VoterSet | None:
    if not (options.standalone or options.initial_controllers):
        return None
    listener = values.list("controller.listener.names")[0]
    if options.initial_controllers:
        return parse_initial_controllers(options.initial_controllers, listener)
    if "controller" not in values.list("process.roles"):
        raise StorageToolError("You can only use --standalone on a controller.")
    host, port = _controller_address(values, listener)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    directory = uuid_text(new_directory_id(_new_uuid))
    return parse_initial_controllers(f"{values.integer('node.id')}@{address}:{directory}", listener)


def _controller_address(values: Values, name: str) -> tuple[str, int]:
    """What other controllers would reach this one by."""
    for text in values.list("advertised.listeners") if values["advertised.listeners"] else ():
        listener, _, address = text.partition("://")
        if listener.upper() == name.upper():
            host, _, port = address.rpartition(":")
            return host.strip("[]") or "localhost", int(port)
    for found in parse_listeners(values):
        if found.name == name.upper():
            return found.host or "localhost", found.port
    raise StorageToolError("No controller listeners found.")


def run_version_mapping(options: Namespace) -> int:
    release = options.release_version or LATEST
    for line in version_mapping(parse_release(release), release):
        print(line)
    return 0


def run_feature_dependencies(options: Namespace) -> int:
    for text in options.feature:
        name, equals, number = text.partition("=")
        if not equals:
            raise StorageToolError(
                f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')"
            )
        if not number.lstrip("-").isdecimal():
            raise StorageToolError(f"Invalid version format: {number} for feature {name}")
        for line in dependencies(name, int(number)):
            print(line)
    return 0


def run_random_uuid(_options: Namespace) -> int:
    print(uuid_text(new_directory_id(_new_uuid)))
    return 0


def _new_uuid() -> Uuid:
    return random_uuid(os.urandom)


def _surroundings() -> Surroundings:
    clock = SystemClock()
    return Surroundings(OsDisk(), clock, java_date(clock.now_ms()), _new_uuid, lambda: os.urandom(24))


_COMMANDS = {
    "info": run_info,
    "format": run_format,
    "version-mapping": run_version_mapping,
    "feature-dependencies": run_feature_dependencies,
    "random-uuid": run_random_uuid,
}


if __name__ == "__main__":
    sys.exit(main())
