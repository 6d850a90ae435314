"""Formatting data directories: what a node needs to find in them before its first start, byte for byte as Kafka's.

    meta.properties                                             in each: whose it is
    bootstrap.checkpoint                                        in each: the records that the metadata log begins with
    __cluster_metadata-0/00…0-0000000000.checkpoint             where the voters are data (KIP-853): the first of them

`meta.properties` comes last in a directory: one that a crash left half formatted is not formatted.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid
from ottla.base.ports import Clock, Disk
from ottla.log import file_names
from ottla.log.files import make_dirs
from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.image.features import KRAFT_VERSION, METADATA_VERSION, METADATA_VERSIONS
from ottla.machines.raft.voters import VoterSet
from ottla.node.storage.bootstrap import BOOTSTRAP
from ottla.node.storage.format_features import effective_levels, level_records
from ottla.node.storage.meta_properties import (
    Directories,
    MetaProperties,
    inspect,
    new_directory_id,
    verify,
    write_meta_properties,
)
from ottla.runtime.metadata.storage.snapshots import BOOTSTRAP_ID, snapshot_batches, write_batches
from ottla.runtime.metadata.storage.store import PARTITION

_SCRAM_SINCE = 11


class CannotFormat(StorageError):
    """The directories are not as formatting needs them."""


class FormatPlan(NamedTuple):
    """What is to be made of which directories. The defaults are a node with static voters at the latest version."""

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str
    release: int | None = None
    features: Mapping[str, int] = MappingProxyType({})
    scram: Sequence[str] = ()
    initial_voters: VoterSet | None = None
    has_dynamic_voters: bool = False
    ignore_formatted: bool = False


class Surroundings(NamedTuple):
    """What formatting needs from outside: the disk, the time, and chance."""

    disk: Disk
    clock: Clock
    date: str
    """Now, as Java writes a date into a properties file."""
    new_uuid: Callable[[], Uuid]
    salt_entropy: Callable[[], bytes]
    """Random bytes for the salt of one password."""


def format_storage(plan: FormatPlan, world: Surroundings, say: Callable[[str], None]) -> list[str]:
    """Formats the directories that are not; returns them. Raises a `StorageError` of one line, and then none is."""
    levels = effective_levels(plan.release, plan.features, has_dynamic_voters=plan.has_dynamic_voters)
    records = level_records(levels)
    if plan.scram:
        if levels[METADATA_VERSION] < _SCRAM_SINCE:
            since = METADATA_VERSIONS[_SCRAM_SINCE].name
            raise CannotFormat(f"SCRAM is only supported in metadata.version {since} or later.")
        from ottla.node.storage.format_scram import parse_scram

        records += [VersionedRecord(parse_scram(text, world.salt_entropy), 0) for text in plan.scram]
    found = _inspect(plan, world.disk, say)
    if not found.empty:
        say("All of the log directories are already formatted.")
        return []
    say(f"Bootstrap metadata: {_described(records, levels[METADATA_VERSION])}")
    taken = [meta.directory_id for meta in found.formatted.values() if meta.directory_id]
    for path in found.empty:
        is_metadata = path == plan.metadata_directory
        release = METADATA_VERSIONS[levels[METADATA_VERSION]].name
        say(f"Formatting {_kind(plan, is_metadata)} {path} with metadata.version {release}.")
        directory_id = _directory_id(plan, is_metadata) or new_directory_id(world.new_uuid, taken)
        taken.append(directory_id)
        _format_directory(path, plan, world, records, levels[KRAFT_VERSION], directory_id)
    return found.empty


def _inspect(plan: FormatPlan, disk: Disk, say: Callable[[str], None]) -> Directories:
    found = inspect(disk, plan.directories)
    verify(found.formatted, node_id=plan.node_id, cluster_id=plan.cluster_id)
    if found.formatted and not plan.ignore_formatted:
        raise CannotFormat(
            f"Log directory {next(iter(found.formatted))} is already formatted. "
            "Use --ignore-formatted to ignore this directory and format the others."
        )
    for path in found.failed:
        say(f"I/O error trying to read log directory {path}. Ignoring...")
    if found.failed and not found.empty and not found.formatted:
        raise CannotFormat("No available log directories to format.")
    return found


def _format_directory(
    path: str,
    plan: FormatPlan,
    world: Surroundings,
    records: list[VersionedRecord],
    kraft_version: int,
    directory_id: Uuid,
) -> None:
    disk, now_ms = world.disk, world.clock.now_ms()
    try:
        make_dirs(disk, path)
        write_batches(disk, f"{path}/{BOOTSTRAP}", snapshot_batches(records, now_ms), part=".tmp")
        if path == plan.metadata_directory and plan.initial_voters is not None:
            metadata = f"{path}/{file_names.partition_dir(PARTITION)}"
            make_dirs(disk, metadata)
            voters = snapshot_batches(
                [],
                now_ms,
                last_contained_log_timestamp=now_ms,
                kraft_version=kraft_version,
                voters=plan.initial_voters,
            )
            write_batches(disk, f"{metadata}/{BOOTSTRAP_ID.name}", voters)
        meta = MetaProperties(plan.cluster_id, plan.node_id, directory_id)
        write_meta_properties(disk, path, meta, world.date)
    except OSError as problem:
        raise CannotFormat(f"Error while writing meta.properties file {path}: {problem}") from problem


def _directory_id(plan: FormatPlan, is_metadata: bool) -> Uuid | None:
    """A voter's directory has the id that the others know it by."""
    voter = plan.initial_voters.get(plan.node_id) if plan.initial_voters and is_metadata else None
    return voter.key.directory_id if voter else None


def _kind(plan: FormatPlan, is_metadata: bool) -> str:
    if not is_metadata:
        return "data directory"
    if plan.initial_voters is None:
        return "metadata directory"
    return f"dynamic metadata {'voter ' if _directory_id(plan, is_metadata) else ''}directory"


def _described(records: list[VersionedRecord], level: int) -> str:
    """In the words of Kafka's tool, but for credentials, of which only the name is shown."""
    shown = ", ".join(f"ApiMessageAndVersion({_record(record)} at version {record.version})" for record in records)
    return f"BootstrapMetadata(records=[{shown}], metadataVersionLevel={level}, source=format command)"


def _record(record: VersionedRecord) -> str:
    message = record.message
    if type(message).__name__ == "UserScramCredentialRecord":
        return f"UserScramCredentialRecord(name='{message.name}', [hidden])"  # type: ignore[attr-defined]
    return f"FeatureLevelRecord(name='{message.name}', featureLevel={message.feature_level})"  # type: ignore[attr-defined]
