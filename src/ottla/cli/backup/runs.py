"""A directory of back-ups: its runs, and which files hold a partition as of each of them.

    backup.json                                 which cluster; made first
    runs/000001.json                            what one run has saved; made last, under another name, and renamed
    data/TOPIC/TOPIC-ID/PARTITION/RUN-OFFSET.…  records, see `block_files`
    restores/CLUSTER-ID.json                    how far a restore to that cluster is, see `restoring`

Theory of operation. A run that is not listed in `runs/` did not finish. Its files are there, and the next run, which
has the same number, continues with them. A run adds to the runs before it: a partition as of run 3 is what its files of
run 1, 2 and 3 hold, in this order (`Chain`). A partition begins anew, without the files before, when its topic was made
anew, when the isolation changes, or when tombstones may have been missed. Where a broker's log was truncated after
an unclean election, what was saved of its lost end is cut off: it stays in the files, for the runs before.

The first line of a JSON file has the XXH3 (128 bits) of the rest.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ports import Disk, Lock
from ottla.cli.backup.block_files import (
    COMPRESSIONS,
    Block,
    Damaged,
    are_counts,
    checksum_of,
    parsed_json,
    read_index,
    stem_of,
)

_MAGIC: Final = "ottla-backup"
_FORMAT: Final = 1
_HEAD_FILE: Final = "backup.json"
_RUNS: Final = "runs"
_DATA: Final = "data"
_RESTORES: Final = "restores"
_LOCK_FILE: Final = ".lock"
NO_TOPIC_ID: Final = "-"
_LAST_MS: Final = 250_000_000_000_000
"""A date that can still be shown."""


class NotABackup(OttlaError):
    """A directory that holds something else, or nothing."""


class PartitionKey(NamedTuple):
    topic: str
    topic_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class SavedFile(NamedTuple):
    """A file of blocks that a run has written, by the path of its stem within the directory."""

    stem: str
    compression: str
    begin: int
    end: int
    blocks: int
    records: int
    raw_bytes: int
    stored_bytes: int


@dataclass(slots=True)
class SavedPartition:
    """What one run says of a partition."""

    partition: int
    log_start: int
    """The first offset of the partition when the run began. What is saved from before it was deleted since."""
    end: int
    """Up to which the partition is saved."""
    leader_epoch: int
    """Of the last batch that is saved."""
    begins: bool
    """Whether the runs before do not count."""
    cut: int | None = None
    """Of what they have saved, only what is before this offset counts."""
    files: list[SavedFile] = field(default_factory=list)
    missing: list[tuple[int, int, str]] = field(default_factory=list)
    """Offsets from, up to, and why this run could not save them."""
    read_ms: int = 0
    """When the run began to read it."""


@dataclass(slots=True)
class SavedTopic:
    name: str
    topic_id: str
    replication_factor: int
    config: dict[str, str]
    """The topic's own settings; those of the cluster's defaults are not among them."""
    partitions: list[SavedPartition] = field(default_factory=list)
    is_compacted: bool = False
    in_force: dict[str, str] = field(default_factory=dict)
    """What was in force of the settings that decide what is deleted (`cluster_state.DELETING`), by default or not."""


@dataclass(slots=True)
class Run:
    """One back-up. Everything but records is in it."""

    number: int
    cluster_id: str
    began_ms: int
    ended_ms: int
    isolation: str
    compression: str
    topics: list[SavedTopic]
    cluster: dict[str, Any]
    """Groups, rules, quotas, users: see `cluster_state`."""
    problems: list[str]
    """What this run could not save."""


def key_of(topic: SavedTopic, partition: SavedPartition) -> PartitionKey:
    return PartitionKey(topic.name, topic.topic_id, partition.partition)


class ChainLink(NamedTuple):
    """A file, and up to which offset it counts."""

    file: SavedFile
    end: int


@dataclass(slots=True)
class Chain:
    """What holds a partition as of some run."""

    isolation: str
    links: list[ChainLink] = field(default_factory=list)
    log_start: int = 0
    end: int = 0
    leader_epoch: int = -1
    read_ms: int = 0
    missing: list[tuple[int, int, str]] = field(default_factory=list)

    def cut(self, end: int) -> None:
        """Forgets what is from this offset on."""
        self.links = [link._replace(end=min(link.end, end)) for link in self.links if link.file.begin < end]
        self.missing = [(a, min(b, end), why) for a, b, why in self.missing if a < end]
        self.end = min(self.end, end)


def common_end(one: Chain | None, other: Chain | None) -> int:
    """Up to which offset two chains have the same records: where they are in the same files."""
    if one is None or other is None or one.isolation != other.isolation:
        return 0
    end = 0
    for mine, theirs in zip(one.links, other.links, strict=False):
        if mine.file != theirs.file:
            break
        end = min(mine.end, theirs.end)
        if mine.end != theirs.end:
            break
    return end


def _add(chains: dict[PartitionKey, Chain], key: PartitionKey, saved: SavedPartition, isolation: str) -> None:
    chain = chains.get(key)
    if chain is None or saved.begins:
        chain = chains[key] = Chain(isolation)
    if saved.cut is not None:
        chain.cut(saved.cut)
    chain.links += (ChainLink(file, file.end) for file in saved.files)
    chain.log_start, chain.end, chain.leader_epoch = saved.log_start, saved.end, saved.leader_epoch
    chain.missing += saved.missing
    chain.read_ms = saved.read_ms


class BackupDirectory:
    """`open` one that is there, or `make` one. Locked until `close`."""

    def __init__(self, disk: Disk, path: str, lock: Lock | None) -> None:
        self.disk = disk
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls, disk: Disk, path: str, cluster_id: str) -> "BackupDirectory":
        """For writing. Raises `NotABackup` for a directory of another cluster, or of something else."""
        disk.make_dirs(path)
        directory = cls(disk, path, _locked(disk, path))
        head = directory._path(_HEAD_FILE)
        if disk.exists(head):
            known = directory._read_json(head)
            if known.get("cluster_id") != cluster_id:
                directory.close()
                raise NotABackup(
                    f"{path} has the back-up of cluster {known.get('cluster_id')}, and this is cluster {cluster_id}. "
                    "Use another directory"
                )
            directory._make_rooms()
            return directory
        if others := [name for name in disk.list_dir(path) if name not in (_LOCK_FILE, _HEAD_FILE + ".new")]:
            directory.close()
            raise NotABackup(f"{path} is not a back-up, and {others[0]} is in it. Use an empty or a new directory")
        directory._write_json(head, {"format": _FORMAT, "cluster_id": cluster_id})
        directory._make_rooms()
        return directory

    def _make_rooms(self) -> None:
        for name in (_RUNS, _DATA):
            self.disk.make_dirs(self._path(name))

    @classmethod
    def open(cls, disk: Disk, path: str) -> "BackupDirectory":
        """For reading alone. Raises `NotABackup`."""
        directory = cls(disk, path, None)
        head = directory._path(_HEAD_FILE)
        if not disk.exists(head):
            raise NotABackup(f"{path} is not a back-up: it has no {_HEAD_FILE}")
        directory._read_json(head)
        return directory

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _path(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    # --- runs ---

    def runs(self) -> "Runs":
        """Those that have finished, as far as they can be read.

        A list that is gone is damaged: where later ones are there, or files of later runs. The number behind the last
        list is not among them: that run did not finish.
        """
        found: dict[int, Run] = {}
        damaged: dict[int, str] = {}
        path = self._path(_RUNS)
        for name in self.disk.list_dir(path) if self.disk.exists(path) else ():
            text, dot, suffix = name.partition(".")
            if not text.isdecimal() or f"{dot}{suffix}" != ".json":
                continue
            try:
                found[int(text)] = _run_of(self._read_json(os.path.join(path, name)))
            except Damaged as problem:
                damaged[int(text)] = str(problem)
        last = max((*found, *damaged), default=0)
        begun = max(self._runs_on_disk(), default=0)
        for number in range(1, (begun if begun > last + 1 else last) + 1):
            if number not in found and number not in damaged:
                damaged[number] = f"{os.path.join(path, _list_name(number))}: it is missing"
        return Runs(found, damaged)

    def _runs_on_disk(self) -> set[int]:
        """Of which there are files."""
        return {
            int(number)
            for key in self.partitions_on_disk()
            for name in self.disk.list_dir(self.absolute(_within(key)))
            if (number := name.partition("-")[0]).isdecimal()
        }

    def save_run(self, run: Run, paths: list[str]) -> None:
        """Makes the run's files durable, and then its list: from then on it counts."""
        self.disk.sync_all(sorted({*paths, *self._directories_of(paths), self.path, os.path.dirname(self.path)}))
        self._write_json(self._path(_RUNS, _list_name(run.number)), _document_of(run))

    def _directories_of(self, paths: list[str]) -> Iterator[str]:
        for path in paths:
            while len(path) > len(self.path):
                path = os.path.dirname(path)
                yield path

    # --- files ---

    def stem(self, key: PartitionKey, run: int, begin: int) -> str:
        """Within the directory."""
        return os.path.join(_within(key), f"{run:06d}-{begin:020d}")

    def absolute(self, within: str) -> str:
        """Raises `Damaged` for a path that leads out of the directory: by its name, or by a link."""
        path = self._path(within)
        root = os.path.realpath(self.path)
        if (
            os.path.isabs(within)
            or ".." in within.split("/")
            or os.path.commonpath([root, os.path.realpath(path)]) != root
        ):
            raise Damaged(f"{self.path}: {within} is outside of it")
        return path

    def relative(self, path: str) -> str:
        return os.path.relpath(path, self.path)

    def chains(self, number: int) -> dict[PartitionKey, Chain]:
        """The partitions as of that run. Those of topics that it does not have are as an earlier run left them.

        A run whose list is damaged is found by its files: their names and indexes say what is in them.
        """
        runs = self.runs()
        chains: dict[PartitionKey, Chain] = {}
        for one in range(1, number + 1):
            if one in runs.found:
                run = runs.found[one]
                for topic in run.topics:
                    for saved in topic.partitions:
                        _add(chains, key_of(topic, saved), saved, run.isolation)
            elif one in runs.damaged:
                self._add_by_files(chains, one)
        return chains

    def _add_by_files(self, chains: dict[PartitionKey, Chain], number: int) -> None:
        """What comes before the first of a partition's files stays: if the run began anew, it is deleted by now."""
        for key in self.partitions_on_disk():
            for stem in self.stems_of(key, number):
                try:
                    index = read_index(self.disk, self.absolute(stem))
                except (Damaged, OSError):
                    continue
                if not index.blocks:
                    continue
                records, raw_bytes, stored_bytes = totals(index.blocks)
                begin, end = index.blocks[0].begin, index.blocks[-1].end
                compression = index.head.compression
                chain = chains.setdefault(key, Chain(index.head.isolation, log_start=begin))
                chain.cut(begin)
                file = SavedFile(stem, compression, begin, end, len(index.blocks), records, raw_bytes, stored_bytes)
                chain.links.append(ChainLink(file, end))
                chain.end, chain.read_ms = end, index.head.began_ms
                chain.leader_epoch = index.blocks[-1].leader_epoch

    def partitions_on_disk(self) -> Iterator[PartitionKey]:
        data = self._path(_DATA)
        for topic in self.disk.list_dir(data) if self.disk.exists(data) else ():
            for topic_id in self.disk.list_dir(os.path.join(data, topic)):
                for partition in self.disk.list_dir(os.path.join(data, topic, topic_id)):
                    if partition.isdecimal():
                        yield PartitionKey(topic, topic_id, int(partition))

    def make_partition(self, key: PartitionKey) -> None:
        self.disk.make_dirs(self.absolute(_within(key)))

    def stems_of(self, key: PartitionKey, run: int) -> list[str]:
        """Of a run that has not finished: its files of a partition, in the order of offsets."""
        within = _within(key)
        if not self.disk.exists(self.absolute(within)):
            return []
        stems = (stem_of(name) for name in self.disk.list_dir(self._path(within)))
        return sorted(os.path.join(within, stem) for stem in stems if stem and stem.startswith(f"{run:06d}-"))

    def remove_leftovers(self, run: int, keys: Iterable[PartitionKey], kept: set[str]) -> None:
        """Files of this run that are not among those kept: of an attempt that did not finish, and had other aims.

        Only of partitions that were saved now, with what these files had. Those of others stay: the cluster may not
        have their records any more.
        """
        for key in keys:
            path = self.absolute(_within(key))
            for name in self.disk.list_dir(path) if self.disk.exists(path) else ():
                number = name.partition("-")[0]
                is_kept = os.path.join(_within(key), name.partition(".")[0]) in kept
                if number.isdecimal() and int(number) == run and not is_kept:
                    self.disk.remove(os.path.join(path, name))

    # --- the place of a restore ---

    def restore_path(self, cluster_id: str) -> str:
        """Raises `Damaged` for an id that leads out of the directory."""
        return self.absolute(os.path.join(_RESTORES, f"{cluster_id}.json"))

    def read_json(self, path: str) -> dict[str, Any] | None:
        """None if there is no such file."""
        return self._read_json(path) if self.disk.exists(path) else None

    def write_json(self, path: str, document: dict[str, Any]) -> None:
        self.disk.make_dirs(os.path.dirname(path))
        self._write_json(path, document)

    # --- JSON with a checksum ---

    def _write_json(self, path: str, document: dict[str, Any]) -> None:
        """Whole or not at all, whatever happens."""
        from json import dumps

        text = dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
        new = f"{path}.new"
        if os.path.islink(new):
            raise Damaged(f"{new} is a link: remove it")
        file = self.disk.open(new, create=True)
        try:
            file.truncate(0)
            file.write_at(0, f"{_MAGIC} {checksum_of(text)}\n".encode() + text)
            file.sync()
        finally:
            file.close()
        self.disk.rename(new, path)
        self.disk.sync_dir(os.path.dirname(path))

    def _read_json(self, path: str) -> dict[str, Any]:
        file = self.disk.open(path)
        try:
            data = file.read_at(0, file.size())
        finally:
            file.close()
        head, _, text = data.partition(b"\n")
        if head != f"{_MAGIC} {checksum_of(text)}".encode():
            raise Damaged(f"{path}: it does not match its checksum")
        document = parsed_json(text)
        if document is None:
            raise Damaged(f"{path}: it is not what `ottla backup` writes")
        if document.get("format", _FORMAT) != _FORMAT:
            raise Damaged(f"{path}: format {document['format']} is of a newer version than this one")
        return document


class Runs(NamedTuple):
    found: dict[int, Run]
    damaged: dict[int, str]
    """Why they cannot be read."""

    @property
    def next_number(self) -> int:
        return max((*self.found, *self.damaged), default=0) + 1


def _list_name(run: int) -> str:
    return f"{run:06d}.json"


def _within(key: PartitionKey) -> str:
    """Where a partition's files are, within the directory."""
    return os.path.join(_DATA, key.topic, key.topic_id, str(key.partition))


def _locked(disk: Disk, path: str) -> Lock:
    try:
        return disk.lock(os.path.join(path, _LOCK_FILE))
    except BlockingIOError:
        raise NotABackup(f"{path}: another process is writing a back-up to it. Wait until it is done") from None


def _document_of(run: Run) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "run": run.number,
        "cluster_id": run.cluster_id,
        "began_ms": run.began_ms,
        "ended_ms": run.ended_ms,
        "isolation": run.isolation,
        "compression": run.compression,
        "topics": [
            {
                "name": topic.name,
                "topic_id": topic.topic_id,
                "replication_factor": topic.replication_factor,
                "compacted": topic.is_compacted,
                "config": topic.config,
                "in_force": topic.in_force,
                "partitions": [
                    {
                        "partition": one.partition,
                        "log_start": one.log_start,
                        "end": one.end,
                        "leader_epoch": one.leader_epoch,
                        "begins": one.begins,
                        "cut": one.cut,
                        "read_ms": one.read_ms,
                        "files": [file._asdict() for file in one.files],
                        "missing": one.missing,
                    }
                    for one in topic.partitions
                ],
            }
            for topic in run.topics
        ],
        "cluster": run.cluster,
        "problems": run.problems,
    }


def _run_of(document: dict[str, Any]) -> Run:
    """Raises `Damaged` for what no run writes, although its checksum is right."""
    try:
        run = _made_of(document)
        fault = next(_faults(run), None)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        fault = repr(problem)
    if fault is not None:
        raise Damaged(f"the list of run {document.get('run')} is not what `ottla backup` writes: {fault}") from None
    return run


def _faults(run: Run) -> Iterator[str]:
    if not are_counts(run.number, run.began_ms, run.ended_ms) or run.began_ms > _LAST_MS:
        yield "its number or times"
    if not isinstance(run.isolation, str) or not isinstance(run.problems, list):
        yield "its isolation or problems"
    for topic in run.topics:
        texts = {topic.name: topic.topic_id, **topic.config, **topic.in_force}
        if not all(isinstance(text, str) for pair in texts.items() for text in pair):
            yield "a topic's name or settings"
        if not are_counts(topic.replication_factor) or not topic.replication_factor:
            yield f"the replicas of {topic.name}"
        if [one.partition for one in topic.partitions] != list(range(len(topic.partitions))):
            yield f"the partitions of {topic.name}"
        for one in topic.partitions:
            numbers = (one.log_start, one.end, one.read_ms, 0 if one.cut is None else one.cut)
            gaps = (offset for begin, end, _ in one.missing for offset in (begin, end))
            if not are_counts(*numbers, *gaps) or type(one.leader_epoch) is not int:
                yield f"offsets of {topic.name}-{one.partition}"
            for file in one.files:
                if not isinstance(file.stem, str) or file.compression not in COMPRESSIONS or not are_counts(*file[2:]):
                    yield f"a file of {topic.name}-{one.partition}"
    for group in run.cluster["groups"]:
        if not isinstance(group["group"], str) or not isinstance(group["type"], str):
            yield "a group"
        for name, partition, offset, metadata in group["offsets"]:
            if not isinstance(name, str) or not isinstance(metadata, str | None) or not are_counts(partition, offset):
                yield f"offsets of group {group['group']}"
    for part in ("acls", "quotas", "users", "settings"):
        if not isinstance(run.cluster[part], list | None):
            yield part


def _made_of(document: dict[str, Any]) -> Run:
    return Run(
        document["run"],
        document["cluster_id"],
        document["began_ms"],
        document["ended_ms"],
        document["isolation"],
        document["compression"],
        [
            SavedTopic(
                topic["name"],
                topic["topic_id"],
                topic["replication_factor"],
                topic["config"],
                [
                    SavedPartition(
                        one["partition"],
                        one["log_start"],
                        one["end"],
                        one["leader_epoch"],
                        one["begins"],
                        one["cut"],
                        [SavedFile(**file) for file in one["files"]],
                        [(begin, end, why) for begin, end, why in one["missing"]],
                        one["read_ms"],
                    )
                    for one in topic["partitions"]
                ],
                topic["compacted"],
                topic.get("in_force", {}),
            )
            for topic in document["topics"]
        ],
        document["cluster"],
        document["problems"],
    )


def totals(blocks: list[Block]) -> tuple[int, int, int]:
    """Records, bytes of batches, bytes stored."""
    return (
        sum(block.records for block in blocks),
        sum(block.raw_bytes for block in blocks),
        sum(block.size for block in blocks),
    )
