"""What `kafka-storage info` tells of a node's directories."""

from collections.abc import Sequence

from ottla.base.ports import Disk
from ottla.log.files import read_file
from ottla.node.storage.meta_properties import ForeignDirectory, MetaProperties, meta_path, parse_meta_properties

_LEGACY = (
    "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are formatted for "
    "legacy mode."
)


def describe_storage(disk: Disk, directories: Sequence[str]) -> tuple[list[str], bool]:
    """The lines, and whether nothing is wrong. The metadata shown is that of the first directory that has any."""
    if not directories:
        return ["No directories specified."], True
    problems: list[str] = []
    found = [path for path in directories if disk.is_dir(path)]
    first: MetaProperties | None = None
    for path in directories:
        if path not in found:
            problems.append(f"{path} {'is not a directory' if disk.exists(path) else 'does not exist'}")
        elif not disk.exists(meta_path(path)):
            problems.append(f"{path} is not formatted.")
        else:
            try:
                meta = parse_meta_properties(read_file(disk, meta_path(path)), meta_path(path))
            except ForeignDirectory as problem:
                problems.append(str(problem))
                continue
            first = first or meta
            if meta.cluster_id != first.cluster_id:
                problems.append("Mismatched cluster IDs between storage directories.")
            elif meta.node_id != first.node_id:
                problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(_LEGACY)
    lines = [*_listed("Found log director", "y:", "ies:", found)]
    if first is not None:
        shown = ", ".join(f"{key}={value}" for key, value in sorted(first.entries().items()))
        lines += [f"Found metadata: {{{shown}}}", ""]
    lines += _listed("Found problem", ":", "s:", problems)
    return lines, not problems


def _listed(title: str, one: str, many: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    return [title + (one if len(items) == 1 else many), *(f"  {item}" for item in items), ""]
