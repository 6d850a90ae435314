"""What to print of the files, chosen once on the command line."""

from dataclasses import dataclass

from ottla.cli.dump.decoders import PLAIN, Parser

MAX_INT = 2**31 - 1
DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """Named after the options of kafka-dump-log. `max_bytes` of `MAX_INT` means the whole file."""

    deep_iteration: bool = False
    print_data_log: bool = False
    parser: Parser = PLAIN
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_bytes: int = MAX_INT
    max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
    as_kafka: bool = True
    """Kafka's tool takes the first entry of an index that is still all zeros for one, and finds it wrong; and it
    remembers every gap between offsets, which in a compacted log are many."""
