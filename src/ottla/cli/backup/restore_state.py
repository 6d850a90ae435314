"""How far a restore is: kept in a file, so that one that was stopped continues, and a later run is added to an earlier.

A topic is known by its id: one that was deleted and made again meanwhile is another. How many of a partition's records
are restored is not kept while they are sent. The destination tells: everything behind `bases` in a topic that only the
restore writes to is the beginning of what the back-up has. What is kept is written before what it speaks of is done
(`making`), or after (`compared`, `settled`); a step that is done twice does no harm.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ottla.cli.backup.block_files import Damaged
from ottla.cli.backup.runs import BackupDirectory

MAKING: Final = "making"
"""The topic is about to be made, or was, and then its id is not known yet."""
SENDING: Final = "sending"
COMPARED: Final = "compared"
"""All records are there, and are the same."""
SETTLED: Final = "settled"
"""The topic has its own settings."""


@dataclass(slots=True)
class RestoredTopic:
    """One topic of the back-up, under the name that it has at the destination."""

    name: str
    run: int
    topic_id: str | None = None
    stage: str = MAKING
    bases: list[int] = field(default_factory=list)
    """Where the restored records of each partition begin at the destination."""
    log_starts: list[int] = field(default_factory=list)
    """With which offset of the back-up they begin. It stays when a later run is added."""
    compared: list[int] = field(default_factory=list)
    """How many records of each partition were compared: all of the runs before this one."""
    skipped: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By partition: offsets of the back-up that were passed over because they are damaged."""
    existed: bool = False
    """Whether the topic was there before the restore: then what it was set to stays."""
    before: dict[str, str] | None = None
    """The topic's own settings of before it was restored, without those that a restore has given it. None until they
    were asked for."""
    defaults: dict[str, str] = field(default_factory=dict)
    """What the destination has for `cluster_state.DELETING` where a topic is set to nothing else."""
    given: dict[str, str] = field(default_factory=dict)
    """The settings that a restore has given it at its end."""


@dataclass(slots=True)
class RestoreState:
    cluster_id: str
    """Of the destination."""
    topics: dict[str, RestoredTopic] = field(default_factory=dict)
    """By the name in the back-up and the one at the destination, with a slash in between."""


class StateFile:
    def __init__(self, directory: BackupDirectory, path: str) -> None:
        self._directory = directory
        self.path = path

    def load(self, cluster_id: str) -> RestoreState:
        """Raises `Damaged`. What was kept for another cluster is ignored."""
        document = self._directory.read_json(self.path)
        if document is None or document.get("cluster_id") != cluster_id:
            return RestoreState(cluster_id)
        try:
            topics = {name: RestoredTopic(**topic) for name, topic in document["topics"].items()}
            for topic in topics.values():
                topic.skipped = {one: [(begin, end) for begin, end in of] for one, of in topic.skipped.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise Damaged(f"{self.path} is not what `ottla restore` writes: {problem!r}") from None
        return RestoreState(cluster_id, topics)

    def save(self, state: RestoreState) -> None:
        document: dict[str, Any] = asdict(state)
        self._directory.write_json(self.path, document)
