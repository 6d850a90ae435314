"""The command line: kafka-dump-log's options by their names, and paths instead of `--files` for people."""

import argparse
import sys
from typing import NoReturn

from ottla.base.errors import OttlaError
from ottla.cli.dump import decoders
from ottla.cli.dump.internal_topics import PARSERS
from ottla.cli.dump.options import DEFAULT_MAX_MESSAGE_SIZE, MAX_INT, Options

KAFKA_VERSION = "4.3.1"

_TOPIC_DECODERS = {
    "--offsets-decoder": "__consumer_offsets",
    "--transaction-log-decoder": "__transaction_state",
    "--cluster-metadata-decoder": "__cluster_metadata",
    "--remote-log-metadata-decoder": "__remote_log_metadata",
    "--share-group-state-decoder": "__share_group_state",
}
"""In Kafka's order of precedence: the first that was asked for counts."""


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """As Kafka's tools: code 1 for bad arguments, where argparse has 2."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def argument_parser(tool: str) -> argparse.ArgumentParser:
    parser = _ArgumentParser(
        prog=tool,
        description="Prints the files of a data directory, ours or Apache Kafka's: batches, records, indexes, "
        "checkpoints, snapshots.",
    )
    _add_what(parser)
    _add_how(parser)
    parser.add_argument("--version", action="version", version=KAFKA_VERSION, help="the version of Kafka it is like")
    return parser


def _add_what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what to print").add_argument
    add("paths", nargs="*", metavar="PATH", help="a file, a partition's directory, or a whole log directory")
    add("--files", metavar="FILE,FILE", help="in place of PATHs: segments' files, printed exactly as Kafka does")
    add("--check", action="store_true", help="only say what is wrong with PATHs: checksums, records, indexes")
    add("--max-bytes", type=int, default=MAX_INT, metavar="SIZE", help="read no more than this of a log (all)")
    add("--verify-index-only", action="store_true", help="hold indexes against the log without printing them")
    add("--index-sanity-check", action="store_true", help="make the check that a starting node makes of an index")
    add(
        "--max-message-size",
        type=int,
        default=DEFAULT_MAX_MESSAGE_SIZE,
        metavar="SIZE",
        help="the largest batch that an index may point to (%(default)s)",
    )


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how to print records").add_argument
    add("--records", "--print-data-log", dest="print_data_log", action="store_true", help="with keys and values")
    add("--deep-iteration", action="store_true", help="without keys and values")
    add("--skip-record-metadata", action="store_true", help="keys and values only, and no control records")
    for option, topic in _TOPIC_DECODERS.items():
        add(option, action="store_true", help=f"records of {topic}; of PATHs they are known by the directory")
    for which in ("key", "value"):
        add(
            f"--{which}-decoder-class",
            nargs="?",
            const=decoders.STRING_DECODER,
            metavar="CLASS",
            help=f"how to print {which}s: one of Kafka's decoders, or module:function (StringDecoder)",
        )


def chosen_decoder(given: argparse.Namespace) -> decoders.Parser | None:
    """The decoder that was asked for by name, if one was."""
    for option, topic in _TOPIC_DECODERS.items():
        if getattr(given, option.strip("-").replace("-", "_")):
            if topic not in PARSERS:
                raise OttlaError(f"{option}: there are no records of {topic} to decode yet")
            return PARSERS[topic]
    if given.key_decoder_class or given.value_decoder_class:
        key, value = (
            decoders.decoder_named(name or decoders.STRING_DECODER)
            for name in (given.key_decoder_class, given.value_decoder_class)
        )
        return decoders.plain(key, value)
    return None


def options_for(given: argparse.Namespace, decoder: decoders.Parser | None, fallback: decoders.Parser) -> Options:
    """A decoder that was asked for asks for keys and values, too."""
    print_data_log = given.print_data_log or decoder is not None
    return Options(
        deep_iteration=given.deep_iteration or print_data_log or given.check,
        print_data_log=print_data_log,
        parser=decoder or fallback,
        skip_record_metadata=given.skip_record_metadata,
        verify_index_only=given.verify_index_only,
        index_sanity_check=given.index_sanity_check,
        max_bytes=given.max_bytes,
        max_message_size=given.max_message_size,
        as_kafka=bool(given.files),
    )
