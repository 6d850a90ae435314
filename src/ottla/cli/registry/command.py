"""`ottla registry`: start a schema registry, and use one, ottla's or another's."""

import argparse
import os
import sys
from importlib import import_module
from typing import Final

from ottla.base.errors import OttlaError
from ottla.cli.help_format import help_formatter
from ottla.cli.start import add_log_options

URL_VARIABLE: Final = "SCHEMA_REGISTRY_URL"
DEFAULT_URL: Final = "http://127.0.0.1:8081"
_LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
_MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_KINDS: Final = ("AVRO", "PROTOBUF", "JSON")


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    module, function = options.action.split(":")
    try:
        result: int = getattr(import_module(f"ottla.cli.registry.{module}"), function)(options)
        return result
    except (OttlaError, OSError, ValueError, TimeoutError) as problem:
        print(f"ottla registry: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla registry",
        description="A schema registry: start one, or use one that runs, ours or another with Confluent's API.",
        formatter_class=help_formatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, action: str, summary: str, *, uses_registry: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary, formatter_class=help_formatter)
        command.set_defaults(action=action)
        if uses_registry:
            _add_connection(command)
        return command

    start = add("start", "start_registry:start", "start a registry, and run it until Ctrl-C", uses_registry=False)
    start.add_argument(
        "-b", "--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster that holds schemas"
    )
    start.add_argument("--port", metavar="PORT", help="port to listen at (default: 8081; 0 picks a free one)")
    start.add_argument("--host", metavar="HOST", help="address to listen at (default: 127.0.0.1 without a file)")
    start.add_argument(
        "--config", metavar="FILE", help="settings under Confluent's names, as schema-registry.properties"
    )
    start.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    add_log_options(start)

    listing = add("list", "schemas:list_subjects", "list subjects, or the versions of one")
    listing.add_argument("subject", nargs="?", help="a subject, whose versions are listed")
    listing.add_argument("--prefix", metavar="TEXT", help="subjects that begin so; `:.ctx:` is a context")
    listing.add_argument("--deleted", action="store_true", help="those that are soft-deleted too")
    listing.add_argument("--json", action="store_true", help="print JSON")

    show = add("show", "schemas:show", "print a schema: of a subject, or by its id or guid")
    show.add_argument("what", metavar="SUBJECT|ID|GUID", help="a subject, a number, or a guid")
    show.add_argument("version", nargs="?", default="latest", help="a version of the subject (default: %(default)s)")
    show.add_argument("--deleted", action="store_true", help="also if it is soft-deleted")
    show.add_argument("--json", action="store_true", help="print all that the registry says of it")

    register = add("register", "schemas:register", "register a schema, and print its id and version")
    check = add("check", "schemas:check", "say whether a schema could be registered, and why not")
    for command in (register, check):
        command.add_argument("subject")
        command.add_argument("file", help="the schema: .avsc, .proto or .json; - is standard input")
        command.add_argument("--type", choices=_KINDS, help="its format (default: by the file's name)")
        command.add_argument(
            "--reference",
            action="append",
            default=[],
            metavar="NAME=SUBJECT:VERSION",
            help="a schema that it refers to; may be repeated",
        )
        command.add_argument("--normalize", action="store_true", help="bring it into its normal form first")
    register.add_argument("--json", action="store_true", help="print all that the registry says")

    diff = add("diff", "schemas:diff", "show how two versions of a subject differ, and what may read what")
    diff.add_argument("subject")
    diff.add_argument("old", help="a version, or `latest`")
    diff.add_argument("new", nargs="?", default="latest", help="a version, or a file (default: %(default)s)")
    diff.add_argument("--type", choices=_KINDS, help="the format of a file (default: by its name)")

    delete = add("delete", "schemas:delete", "delete a subject or a version: softly, or for good")
    delete.add_argument("subject")
    delete.add_argument("version", nargs="?", help="a version; without it, all of them")
    delete.add_argument("--permanent", action="store_true", help="for good; softly first, if that was not done")

    config = add("config", "settings:config", "print or set compatibility and the like, for a subject or for all")
    config.add_argument("subject", nargs="?", help="a subject or context; without it, all")
    config.add_argument("--compatibility", choices=_LEVELS, type=str.upper)
    config.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="any other member of a config")
    config.add_argument("--delete", action="store_true", help="take it back, so that what is above it counts")

    mode = add("mode", "settings:mode", "print or set the mode, of a subject or of all")
    mode.add_argument("subject", nargs="?", help="a subject or context; without it, all")
    mode.add_argument("--set", choices=_MODES, type=str.upper, help="the mode")
    mode.add_argument("--force", action="store_true", help="IMPORT also where there are schemas")
    mode.add_argument("--delete", action="store_true", help="take it back, so that what is above it counts")

    export = add("export", "copying:export_schemas", "write all schemas and settings to a file, one JSON a line")
    export.add_argument("file", help="- is standard output")
    export.add_argument("--prefix", metavar="TEXT", help="subjects that begin so (default: all, of all contexts)")
    imports = add("import", "copying:import_schemas", "register what `export` wrote: ids, versions, deletions kept")
    imports.add_argument("file", help="- is standard input")
    copy = add("copy", "copying:copy_schemas", "copy all schemas to another registry: ids, versions, deletions kept")
    copy.add_argument("--to", required=True, metavar="URL", help="the other registry")
    copy.add_argument("--to-basic-auth", metavar="USER:PASSWORD", help="the login there")
    copy.add_argument("--to-token", metavar="TOKEN", help="the bearer token there")
    copy.add_argument("--to-ca", metavar="FILE", help="certificates to trust there, in PEM")
    copy.add_argument("--prefix", metavar="TEXT", help="subjects that begin so (default: all, of all contexts)")
    for command in (imports, copy):
        command.add_argument(
            "--keep-mode", action="store_true", help="leave modes as they are: the other registry is in IMPORT already"
        )
    return parser


def _add_connection(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-u",
        "--url",
        default=os.environ.get(URL_VARIABLE, DEFAULT_URL),
        help=f"the registry; several with commas between (default: {URL_VARIABLE}, or {DEFAULT_URL})",
    )
    command.add_argument("--basic-auth", metavar="USER:PASSWORD", help="a login")
    command.add_argument("--token", metavar="TOKEN", help="a bearer token")
    command.add_argument("--ca", metavar="FILE", help="certificates to trust, in PEM")
    command.add_argument("--cert", metavar="FILE", help="a certificate to show, in PEM")
    command.add_argument("--key", metavar="FILE", help="its private key, in PEM")
