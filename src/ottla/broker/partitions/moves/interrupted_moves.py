"""What a stop in the middle of a move between directories has left, put right before any replica is served.

A partition may be found in two directories, or in one with a future log in another, or as a future log alone. The
metadata was made to name the target directory after the copy was whole and before the swap, and the swap is two renames
that become durable in any order. So:

- in two directories: the one that the metadata names is the partition's, and the other one was to go. If it has records
  that the first has not, something else has happened, and it is set aside for a person to look at. If the metadata
  names neither, it is the one that was served last: it has all that the other has, or records of a later leader epoch
  where they part. If that cannot be determined, the partition is offline, and both stay as they are. Apache Kafka does
  not start then, whatever the two have in them;
- a future log, and the metadata names its directory: it is the partition's if it has at least what the current log has.
  If it has less, the crash came before the swap, and what was appended last is in the current log alone: the move goes
  on. So it does if the current log was cut, and has other records there since, of later leader epochs. If the future
  log has those, the swap had happened, and a power cut has undone its renames;
- a future log, and the metadata names another directory: the move continues. But if the log there was found damaged,
  and
  lacks what the copy has, the copy is set aside;
- a future log, and a log that is damaged: both stay as they are. The copy may lack what was appended last;
- a future log alone: it is the partition's if the metadata names its directory, or has never named one. If not, it
  waits as long as a directory is offline, where the partition's log may be. With all directories there, nobody knows
  where it is, and a copy that may be all that is left is not for us to delete: it is set aside.
"""

import logging
from typing import TYPE_CHECKING

from ottla.base.errors import ProtocolError, StorageError
from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk
from ottla.broker.partitions.moves.replica_copy import PROBLEMS
from ottla.log import file_names
from ottla.log.directory import LogDirectory
from ottla.log.future_logs import common_end, follow_offsets
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.directory_ids import MIGRATING, UNASSIGNED

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.partitions.removing import DiscardedLogs

_log = logging.getLogger(__name__)


def settle_interrupted_moves(
    partitions: "Partitions", disk: Disk, discarded_logs: "DiscardedLogs"
) -> list[tuple[TopicPartition, LogDirectory]]:
    """Returns the moves that are to continue: the partition and the directory it is on its way to."""
    for name, directories in partitions.logs.doubles().items():
        try:
            _settle_double(partitions, discarded_logs, name, directories)
        except PROBLEMS as problem:
            _leave_offline(partitions, name, str(problem))
    to_continue: list[tuple[TopicPartition, LogDirectory]] = []
    for directory in list(partitions.logs.online.values()):
        for name, future in list(directory.futures.logs.items()):
            try:
                if _settle_future(partitions, disk, discarded_logs, name, future, directory):
                    to_continue.append((name, directory))
            except OSError as problem:
                partitions.on_disk_error(directory.path, problem)
            except (StorageError, ProtocolError) as problem:
                _leave_offline(partitions, name, str(problem))
    return to_continue


def _settle_double(
    partitions: "Partitions", discarded_logs: "DiscardedLogs", name: TopicPartition, directories: list[LogDirectory]
) -> None:
    topic, home = partitions.metadata.image.topics.by_name.get(name.topic), _home_of(partitions, name)
    directories = [one for one in directories if topic and one.topic_ids.get(name, topic.id) == topic.id]
    if len(directories) < 2:
        return  # The others are of a topic that had this name before.
    if home not in directories:
        # A cluster of before KIP-858; or it was made in one directory, or moved there, and the metadata heard nothing.
        home = next((one for one in directories if _was_served_last(name, one, directories)), None)
    if home is None:
        paths = " and ".join(directory.logs[name].directory for directory in directories)
        _leave_offline(partitions, name, f"{paths} have different records, and nothing says which of them was served")
        return
    for directory in directories:
        if directory is not home:
            _drop_old(partitions, discarded_logs, name, directory, home)


def _was_served_last(name: TopicPartition, home: LogDirectory, directories: list[LogDirectory]) -> bool:
    """A move ends with a whole copy, and only that is written to from then on."""
    log = home.logs[name]
    others = [one.logs[name] for one in directories if one is not home]
    return all(_is_the_newer(log, other) and log.log_start_offset <= other.log_end_offset for other in others)


def _leave_offline(partitions: "Partitions", name: TopicPartition, why: str) -> None:
    """One partition that cannot be settled is offline by name, and its files stay as they are."""
    _log.error(
        "%s is offline: %s. Look at them with `ottla verify` and `ottla dump-log`, rename the directory of the one "
        "that is not wanted, and restart the node",
        name,
        why,
    )
    for directory in partitions.logs.online.values():
        if name in directory.futures.logs:
            directory.futures.close(name)
    partitions.logs.distrust(name)
    topic = partitions.metadata.image.topics.by_name.get(name.topic)
    if topic is not None:
        partitions.offline.add(name)
        partitions.tell_unserved(topic.id, name)


def _drop_old(
    partitions: "Partitions",
    discarded_logs: "DiscardedLogs",
    name: TopicPartition,
    old: LogDirectory,
    home: LogDirectory,
) -> None:
    if common_end(home.logs[name], old.logs[name]) < old.logs[name].log_end_offset:
        discarded_logs.set_aside(old, name, old.logs[name])
        return
    _log.warning("%s had moved from %s to %s when the node stopped; the old replica goes", name, old.path, home.path)
    follow_offsets(home.logs[name], old.logs[name])
    _retire(partitions, name, old, home)


def _settle_future(
    partitions: "Partitions",
    disk: Disk,
    discarded_logs: "DiscardedLogs",
    name: TopicPartition,
    future: PartitionLog,
    target: LogDirectory,
) -> bool:
    """Returns whether the move is to continue."""
    topic = partitions.metadata.image.topics.by_name.get(name.topic)
    image = topic.partitions.get(name.partition) if topic else None
    is_ours = (
        topic
        and image
        and partitions.identity.node_id in image.replicas
        and target.topic_ids.get(name, topic.id) == topic.id
    )
    source = next((one for one in partitions.logs.online.values() if name in one.logs), None)
    home = _home_of(partitions, name)
    is_lost = source is None and home is not target and _is_placed(partitions, name) if is_ours else True
    if is_ours and source is None and ((is_lost and partitions.logs.offline) or _is_damaged(partitions, name)):
        target.futures.close(name)
        return False
    if is_lost:
        _log.warning(
            "%s belongs to no partition of this broker; renamed to %s", future.directory, _set_aside(target, name)
        )
        return False
    if source is not None and not (home is target and _is_the_newer(future, source.logs[name])):
        end_offset = common_end(future, source.logs[name])
        if name in source.lacking and end_offset < future.log_end_offset:
            _log.warning("%s has what %s has lost; it is now %s", future.directory, name, _set_aside(target, name))
            return False
        _cut_to(future, end_offset)
        _log.info("%s: resuming the move to %s", name, target.path)
        return True
    if source is not None and source.was_clean and target.was_clean and name not in source.lacking:
        # Nothing was lost: what the copy has beyond the log was cut away there, and the move was not reported in time.
        _cut_to(future, source.logs[name].log_end_offset)
    _log.warning("%s: completed the interrupted move to %s", name, target.path)
    target.promote(name)
    disk.sync_dir(target.path)
    if source is not None:
        _drop_old(partitions, discarded_logs, name, source, target)
    return False


def _is_damaged(partitions: "Partitions", name: TopicPartition) -> bool:
    topic_id = partitions.metadata.image.topics.by_name[name.topic].id
    return any(
        name in one.damaged and one.topic_ids.get(name, topic_id) == topic_id for one in partitions.logs.online.values()
    )


def _is_the_newer(future: PartitionLog, current: PartitionLog) -> bool:
    """Whether the future log is what the partition was last served from, or might as well have been."""
    agreed = common_end(future, current)
    has_parted = agreed < min(future.log_end_offset, current.log_end_offset)
    return agreed == current.log_end_offset or (has_parted and future.epochs.latest > current.epochs.latest)


def _cut_to(future: PartitionLog, offset: int) -> None:
    if offset < future.log_end_offset:
        future.truncate_to(offset)
        future.remove_deleted(at_once=True)  # Nobody reads what was cut away.


def _retire(partitions: "Partitions", name: TopicPartition, source: LogDirectory, target: LogDirectory) -> None:
    try:
        clean_offset = source.cleaner_offset(name)
        if clean_offset is not None and target.cleaner_offset(name) is None:
            target.save_cleaner_offset(name, clean_offset)
        source.bury(source.retire(name))
    except OSError as problem:
        partitions.on_disk_error(source.path, problem)


def _set_aside(directory: LogDirectory, name: TopicPartition) -> str:
    return directory.futures.set_aside(name, file_names.STRAY_DIR)


def _home_of(partitions: "Partitions", name: TopicPartition) -> LogDirectory | None:
    """The directory that the metadata names, if it is one that is online."""
    topic = partitions.metadata.image.topics.by_name.get(name.topic)
    image = topic.partitions.get(name.partition) if topic else None
    wanted = image.directory(partitions.identity.node_id) if image else None
    return next(
        (partitions.logs.online.get(path) for path, id in partitions.identity.directory_ids.items() if id == wanted),
        None,
    )


def _is_placed(partitions: "Partitions", name: TopicPartition) -> bool:
    """Whether the metadata has ever named a directory; clusters of before KIP-858 do not."""
    image = partitions.metadata.image.topics.by_name[name.topic].partitions[name.partition]
    return image.directory(partitions.identity.node_id) not in (UNASSIGNED, MIGRATING)
