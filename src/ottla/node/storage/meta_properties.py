"""Whose a data directory is: `meta.properties` says which cluster's, which node's, and which of its directories.

Formatting writes it last, so a directory without it is not formatted, whatever else is in it. At every start all
directories must agree on the cluster and on the node, and have ids of their own: data that was copied or mixed up is
found before anything is opened.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid, parse_uuid, uuid_text
from ottla.base.ports import Disk
from ottla.config.properties import read_properties, write_properties
from ottla.log import file_names
from ottla.log.files import read_file, replace_file
from ottla.runtime.metadata.storage.store import PARTITION

VERSION = 1
_RESERVED_IDS = 100


class NotFormatted(StorageError):
    """A directory without `meta.properties`."""


class ForeignDirectory(StorageError):
    """A directory that is another cluster's or another node's, or that is not what `meta.properties` says."""


class MetaProperties(NamedTuple):
    """Version 0 is of the time before KRaft; only version 1 always has cluster and node."""

    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None = None
    version: int = VERSION

    def entries(self) -> dict[str, str]:
        """In the order in which a Java hash table, and so Apache Kafka, writes them."""
        found: dict[str, str] = {}
        if self.node_id is not None and self.version > 0:
            found["node.id"] = str(self.node_id)
        if self.directory_id is not None:
            found["directory.id"] = uuid_text(self.directory_id)
        found["version"] = str(self.version)
        if self.cluster_id is not None:
            found["cluster.id"] = self.cluster_id
        return found


class Directories(NamedTuple):
    """What the log directories of a node are found to be."""

    formatted: dict[str, MetaProperties]
    empty: list[str]
    failed: dict[str, OSError]


def parse_meta_properties(content: bytes, path: str) -> MetaProperties:
    try:
        found = read_properties(content)
        version = int(found.get("version", "0"))
        if version not in (0, VERSION):
            raise ValueError(f"Unknown meta.properties version number {version}")
        node_id = found.get("node.id" if version else "broker.id")
        directory_id = found.get("directory.id")
        meta = MetaProperties(
            found.get("cluster.id"),
            int(node_id) if node_id is not None else None,
            parse_uuid(directory_id) if directory_id is not None else None,
            version,
        )
    except ValueError as problem:
        raise ForeignDirectory(f"Error loading {path}: {problem}") from problem
    return meta


def format_meta_properties(meta: MetaProperties, date: str) -> bytes:
    """As `java.util.Properties` stores them: an empty comment, the date, the entries."""
    return write_properties(meta.entries(), comments=("", date))


def inspect(disk: Disk, paths: Iterable[str]) -> Directories:
    """Looks into every directory. Raises `ForeignDirectory` for a `meta.properties` that cannot be read as one.

    Only a directory without the file is empty. What stands in the way otherwise, a file in place of the directory for
    one, is a failure of the disk.
    """
    found = Directories({}, [], {})
    for path in sorted(set(paths)):
        file = meta_path(path)
        try:
            found.formatted[path] = parse_meta_properties(read_file(disk, file), file)
        except FileNotFoundError:
            found.empty.append(path)
        except OSError as problem:
            found.failed[path] = problem
    return found


def meta_path(path: str) -> str:
    return f"{path}/{file_names.META_PROPERTIES}"


def verify(formatted: Mapping[str, MetaProperties], *, node_id: int, cluster_id: str | None = None) -> None:
    """Raises `ForeignDirectory` unless all are of one cluster (`cluster_id`, if given) and of this node."""
    homes: dict[Uuid, str] = {}
    for path, meta in sorted(formatted.items()):
        file = meta_path(path)
        if meta.version < VERSION:
            raise ForeignDirectory(f"{file} is of version {meta.version}, of a cluster that ran on ZooKeeper")
        if meta.cluster_id is None or meta.node_id is None:
            raise ForeignDirectory(f"{file} has no {'cluster.id' if meta.cluster_id is None else 'node.id'}")
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id != cluster_id:
            raise ForeignDirectory(f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {meta.cluster_id}")
        if meta.node_id != node_id:
            raise ForeignDirectory(f"{file} is of node {meta.node_id}, and node.id says that this is node {node_id}")
        if meta.directory_id is None:
            continue
        if is_reserved(meta.directory_id):
            raise ForeignDirectory(f"{file} has the reserved directory.id {uuid_text(meta.directory_id)}")
        if meta.directory_id in homes:
            raise ForeignDirectory(
                f"{homes[meta.directory_id]} and {path} have the same directory.id {uuid_text(meta.directory_id)}: "
                "one is a copy of the other"
            )
        homes[meta.directory_id] = path


class Storage(NamedTuple):
    """The directories of a node that is about to start. `failed` ones are offline from the start."""

    cluster_id: str
    directory_ids: dict[str, Uuid]
    failed: dict[str, OSError]


def load_storage(
    disk: Disk, log_dirs: Sequence[str], metadata_log_dir: str, node_id: int, *, new_uuid: Callable[[], Uuid], date: str
) -> Storage:
    """Checks every directory before anything in it is opened. Raises a `StorageError` of one clear line.

    A directory that has no id yet, of a version of Kafka that gave none, gets one. That a data directory cannot be read
    is not the end, unless it is the one with the metadata.
    """
    found = inspect(disk, [*log_dirs, metadata_log_dir])
    if metadata_log_dir in found.failed:
        raise StorageError(
            f"the metadata directory {metadata_log_dir} cannot be read: {found.failed[metadata_log_dir]}"
        )
    if found.empty:
        key = "log.dirs" if found.empty[0] in log_dirs else "metadata.log.dir"
        raise NotFormatted(
            f"{found.empty[0]} is not formatted: it is in {key} and has no meta.properties (see kafka-storage format)"
        )
    verify(found.formatted, node_id=node_id)
    for path in found.formatted:
        metadata = f"{path}/{file_names.partition_dir(PARTITION)}"
        if path != metadata_log_dir and disk.exists(metadata):
            raise ForeignDirectory(f"{metadata} is not where the metadata log is to be, in {metadata_log_dir}")
    directory_ids: dict[str, Uuid] = {}
    for path, meta in found.formatted.items():
        directory_id = meta.directory_id or new_directory_id(new_uuid, directory_ids.values())
        if meta.directory_id is None:
            write_meta_properties(disk, path, meta._replace(directory_id=directory_id), date)
        directory_ids[path] = directory_id
    cluster_id = found.formatted[metadata_log_dir].cluster_id
    assert cluster_id is not None, "verified"
    return Storage(cluster_id, directory_ids, found.failed)


def write_meta_properties(disk: Disk, path: str, meta: MetaProperties, date: str) -> None:
    replace_file(disk, meta_path(path), format_meta_properties(meta, date))


def is_reserved(uuid: Uuid) -> bool:
    """The first hundred stand for directories that are lost, unassigned and the like (KIP-858)."""
    return int.from_bytes(uuid, "big") < _RESERVED_IDS


def new_directory_id(new_uuid: Callable[[], Uuid], taken: Iterable[Uuid] = ()) -> Uuid:
    """One that nothing else has, and whose text does not look like an option on a command line."""
    while is_reserved(uuid := new_uuid()) or uuid in set(taken) or uuid_text(uuid).startswith("-"):
        pass
    return uuid
