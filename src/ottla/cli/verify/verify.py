"""`ottla verify DIR…` or `ottla verify --bootstrap-server HOST:PORT`: is what was stored still there, and readable?

Of a directory: checksums, offsets, indexes, leader epochs, the order of producers, snapshots, checkpoints. Of a running
cluster: the same of what replicas send, and that all replicas have the same. Nothing is changed, and a node may run on
the directory. The exit code is 0 if nothing is damaged, 1 if something is, 2 if it could not be looked at.
"""

import os
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final, TextIO

from ottla.cli.bars import CLEAR, Pace, bar, time_left
from ottla.cli.colours import BOLD, DIM, RED, YELLOW, Palette, palette_for
from ottla.cli.help_format import CommandParser
from ottla.cli.text_tables import counted, size
from ottla.cli.verify.problems import DAMAGE, LEVELS, Problem

if TYPE_CHECKING:
    from ottla.cli.verify.cluster_check import ClusterPartition
    from ottla.client.blocking.admin import Admin

_NOT_LOOKED_AT: Final = 2
_INTERRUPTED: Final = 130
_COLOURS: Final = {DAMAGE: RED, "note": YELLOW}
_EVERY_S: Final = 0.2


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla verify",
        description=(
            "Looks at every batch of data directories, or of a running cluster, and at all that must agree with them. "
            "Changes nothing; a node may run on the directory."
        ),
        epilog="Exit code: 0 nothing is damaged, 1 something is, 2 it could not be looked at.",
    )
    parser.add_argument("paths", nargs="*", metavar="DIR", help="a data directory, or a partition's, ours or Kafka's")
    parser.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="a running cluster instead")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file with settings of the client")
    parser.add_argument("--topic", metavar="PATTERN", help="only topics whose whole name matches (default: all)")
    parser.add_argument("--deep", action="store_true", help="decompress batches of a directory and read every record")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if bool(options.paths) == bool(options.bootstrap_server):
        parser.error("name either directories, or a cluster with --bootstrap-server")
    try:
        options.pattern = re.compile(options.topic or ".*")
    except re.error as problem:
        parser.error(f"--topic {options.topic}: {problem}")
    report = Report(options)
    look = _look_at_cluster if options.bootstrap_server else _look_at_directories
    try:
        is_done = look(options, report)
    except KeyboardInterrupt:
        report.finish(is_interrupted=True)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough; the interpreter must not complain on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if not is_done:
        return _NOT_LOOKED_AT
    report.finish()
    return 1 if report.counts[DAMAGE] else 0


class Report:
    """Problems as they are found, progress on a terminal meanwhile, and a last line. With `--json` all at the end."""

    def __init__(self, options: Namespace, out: TextIO | None = None, errors: TextIO | None = None) -> None:
        self.counts = dict.fromkeys(LEVELS, 0)
        self.total_bytes = 0
        self.partitions = 0
        self._is_json: bool = options.json
        self._out = out or sys.stdout
        self._errors = errors or sys.stderr
        self._paint = palette_for(self._out)
        self._is_live = self._errors.isatty() and not options.quiet
        self._found: list[Problem] = []
        self._seen_bytes = 0
        self._began_s = self._shown_s = time.monotonic()
        self._pace = Pace(self._began_s)
        self._partition = ""

    def tell(self, problem: Problem) -> None:
        self.counts[problem.level] += 1
        if self._is_json:
            self._found.append(problem)
            return
        self._clear()
        for line in _lines(problem, self._paint):
            print(line, file=self._out)
        self._out.flush()

    def progress(self, partition: str, size_bytes: int) -> None:
        if partition != self._partition:
            self._partition = partition
            self.partitions += 1
        self._seen_bytes += size_bytes
        now_s = time.monotonic()
        if self._is_live and now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._pace.note(self._seen_bytes, now_s)
            wrong = f", {self.counts[DAMAGE]} damaged" if self.counts[DAMAGE] else ""
            line = f"{size(self._seen_bytes)}, {size(self._pace.rate(self._seen_bytes, now_s))}/s{wrong}, {partition}"
            if self.total_bytes:
                left = time_left(self._pace.left_s(self._seen_bytes, self.total_bytes, now_s))
                line = f"{bar(self._seen_bytes, self.total_bytes)}  {line}{left}"
            self._errors.write(f"{CLEAR}{line}")
            self._errors.flush()

    def complain(self, text: str) -> None:
        self._clear()
        print(f"ottla verify: {text}", file=self._errors)

    def finish(self, *, is_interrupted: bool = False) -> None:
        self._clear()
        if self._is_json:
            self._print_json(is_interrupted=is_interrupted)
            return
        damaged = self.counts[DAMAGE]
        verdict = f"{damaged} damaged" if damaged else "nothing is damaged"
        notes = f", {self.counts['note']} notes" if self.counts["note"] else ""
        stopped = "stopped; so far: " if is_interrupted else ""
        took_s = time.monotonic() - self._began_s
        looked = f"{counted(self.partitions, 'partition')}, {self._seen_bytes / 1e6:,.1f} MB in {took_s:.1f} s"
        print(self._paint(f"{stopped}{looked}: {verdict}{notes}", BOLD), file=self._out)

    def _print_json(self, *, is_interrupted: bool) -> None:
        import json

        shown = {
            "partitions": self.partitions,
            "bytes": self._seen_bytes,
            "complete": not is_interrupted,
            "counts": self.counts,
            "problems": [problem._asdict() for problem in self._found],
        }
        print(json.dumps(shown, indent=2), file=self._out)

    def _clear(self) -> None:
        if self._is_live:
            self._errors.write(CLEAR)
            self._errors.flush()


def _lines(problem: Problem, paint: Palette) -> "list[str]":
    where = [problem.partition] if problem.partition else []
    if problem.offset >= 0:
        where.append(f"offset {problem.offset}")
    if problem.position >= 0:
        where.append(f"position {problem.position}")
    head = f"{paint(problem.level, _COLOURS[problem.level])}  {', '.join(where)}: {problem.what}"
    return [
        head,
        paint(f"        in {problem.file}", DIM),
        *([paint(f"        {problem.advice}", DIM)] if problem.advice else []),
    ]


def _look_at_directories(options: Namespace, report: Report) -> bool:
    from ottla.cli.verify.directory_check import DataDirectory, NotADataDirectory

    def is_chosen(topic: str) -> bool:
        return options.pattern.fullmatch(topic) is not None

    directories = []
    for path in options.paths:
        try:
            directories.append(DataDirectory(path, is_chosen, deep=options.deep))
        except (NotADataDirectory, OSError) as problem:
            report.complain(_error_text(problem))
            return False
    report.total_bytes = sum(directory.size_bytes for directory in directories)
    for directory in directories:
        directory.check(report.tell, report.progress)
    return True


def _look_at_cluster(options: Namespace, report: Report) -> bool:
    from ottla.cli.failures import FAILURES, error_text
    from ottla.cli.sessions import admin_settings, open_admin
    from ottla.cli.verify.cluster_check import check_cluster
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.io.loop_thread import LoopThread

    try:
        with open_admin(options.bootstrap_server, config_file=options.command_config) as admin:
            partitions = _partitions(admin, options.pattern)
            report.total_bytes = _size_of(admin, partitions)
        loop = LoopThread("ottla-verify")
        settings = admin_settings(options.bootstrap_server, config_file=options.command_config)
        with loop.lock:
            cluster = Cluster(loop.world, settings)
        try:
            loop.ask(cluster.refresh)
            check_cluster(loop, cluster, partitions, report.tell, report.progress)
        finally:
            with loop.lock:
                cluster.close()
            loop.stop()
    except FAILURES as problem:
        report.complain(error_text(problem))
        return False
    return True


def _size_of(admin: "Admin", partitions: "list[ClusterPartition]") -> int:
    """Of all replicas; 0 where that may not be asked."""
    from ottla.client.errors import KafkaError

    names = {one.name for one in partitions}
    try:
        brokers = admin.describe_log_dirs(sorted({node for one in partitions for node in one.replicas})).succeeded
    except KafkaError:
        return 0
    return sum(
        replica.size_bytes
        for directories in brokers.values()
        for directory in directories.values()
        for name, replica in directory.replicas.items()
        if name in names
    )


def _partitions(admin: "Admin", pattern: "re.Pattern[str]") -> "list[ClusterPartition]":
    from ottla.base.ids import TopicPartition
    from ottla.cli.verify.cluster_check import ClusterPartition
    from ottla.client.admin.configs import ConfigResource, ResourceType

    names = [topic.name for topic in admin.list_topics(include_internal=True) if pattern.fullmatch(topic.name)]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    configs = admin.describe_configs(resources) if names else {}
    compacted = {
        resource.name for resource, found in configs.items() if "compact" in str(found["cleanup.policy"].value)
    }
    return [
        ClusterPartition(
            TopicPartition(topic.name, one.partition),
            one.leader if one.leader is not None else -1,
            tuple(one.replicas),
            topic.name in compacted,
        )
        for topic in (admin.describe_topics(names).values() if names else ())
        for one in topic.partitions
    ]


def _error_text(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename:
        return f"{os.fsdecode(problem.filename)}: {problem.strerror}"
    return str(problem)


if __name__ == "__main__":
    sys.exit(main())
