"""`ottla dump-log PATH…` and `kafka-dump-log --files …`: one tool with two ways to name files.

With `--files` it is Apache Kafka's tool, line for line (tests hold it against Kafka's own output). With paths it also
takes directories, knows the other files of a data directory and which topic a directory is of, and exits with 1
when a checksum, a record or an index entry is wrong. Where `--files` differs from Apache Kafka 4.3.1:

- What makes a file unreadable is one line on stderr and exit code 1, not a stack trace; the other files are printed.
- A corrupt producer snapshot, too, ends in exit code 1.
- An index of nothing but zeros over an empty log, as a kill leaves it, is a mismatch; Kafka's tool dies of it.
- Findings come in the order of `--files`; Kafka's in that of a hash table.
- Records inside a compressed entry of magic 0 or 1 are printed without the checksum that each has of its own.
- What a decoder cannot read is reported in our words.
- DefaultDecoder prints bytes in hexadecimal; decoders of your own are Python functions, `module:function`.
- `--remote-log-metadata-decoder` is refused: there are no such records yet.
- `--help` is a success.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator

from ottla.base.errors import OttlaError
from ottla.cli.dump import decoders
from ottla.cli.dump.arguments import argument_parser, chosen_decoder, options_for
from ottla.cli.dump.files import dump_any_file, dump_segment_file, printable_files
from ottla.cli.dump.findings import Findings
from ottla.cli.dump.internal_topics import parser_of

Lines = Callable[[str], Iterator[str]]
_CHARACTERS_AT_A_TIME = 32 * 1024


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if everything could be read and, of paths, if nothing was wrong with it."""
    tool = "kafka-dump-log" if os.path.basename(sys.argv[0]).startswith("kafka-") else "ottla dump-log"
    parser = argument_parser(tool)
    given = parser.parse_intermixed_args(arguments)
    if bool(given.paths) == bool(given.files):
        parser.error("name the files to print: either as PATHs, or separated by commas after --files")
    try:
        decoder = chosen_decoder(given)
    except OttlaError as problem:
        parser.error(str(problem))
    try:
        return _dump_files(tool, given, decoder) if given.files else _dump_paths(tool, given, decoder)
    except BrokenPipeError:
        # The reader of our output has seen enough; the interpreter must not complain on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dump_files(tool: str, given: Namespace, decoder: decoders.Parser | None) -> int:
    options = options_for(given, decoder, decoders.PLAIN)
    findings = Findings()

    def lines(path: str) -> Iterator[str]:
        known = dump_segment_file(path, options, findings)
        if known is None:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
            return iter(())
        return known

    readable = _print_all(tool, given.files.split(","), lines)
    _tell(findings.of_indexes())
    _tell(findings.of_offsets())
    _tell(findings.unreadable)
    return 0 if readable and not findings.unreadable else 1


def _dump_paths(tool: str, given: Namespace, decoder: decoders.Parser | None) -> int:
    findings = Findings()
    files = [file for path in given.paths for file in printable_files(path)]

    def lines(path: str) -> Iterator[str]:
        return dump_any_file(path, options_for(given, decoder, parser_of(path)), findings)

    readable = _print_all(tool, files, lines, only_check=given.check)
    wrong = [*findings.of_indexes(), *findings.of_checksums(), *findings.unreadable]
    _tell(wrong)
    if given.check and readable and not wrong:
        print(f"{len(files)} files, nothing wrong")
    return 0 if readable and not wrong else 1


def _print_all(tool: str, files: Iterable[str], lines: Lines, only_check: bool = False) -> bool:
    """Prints every file, or only reads it; says whether all of them could be read."""
    readable = True
    for path in files:
        if not only_check:
            print(f"Dumping {path}")
        try:
            if only_check:
                _consume(lines(path))
            else:
                _write(lines(path))
        except OttlaError as problem:
            readable = False
            _tell([f"{tool}: {problem}"])
        except BrokenPipeError:
            raise
        except OSError as problem:
            readable = False
            _tell([f"{tool}: {problem.filename or path}: {problem.strerror}"])
    return readable


def _write(lines: Iterator[str]) -> None:
    """Prints many lines at a time, which takes half as long, and what came before a failure all the same."""
    waiting: list[str] = []
    size = 0
    try:
        for line in lines:
            waiting.append(line)
            size += len(line)
            if size > _CHARACTERS_AT_A_TIME:
                waiting.append("")
                sys.stdout.write("\n".join(waiting))
                waiting.clear()
                size = 0
    finally:
        waiting.append("")
        sys.stdout.write("\n".join(waiting))


def _consume(lines: Iterator[str]) -> None:
    for _ in lines:
        pass


def _tell(complaints: Iterable[str]) -> None:
    sys.stdout.flush()  # so that, on a terminal, a complaint comes after the lines it is about
    for complaint in complaints:
        print(complaint, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
