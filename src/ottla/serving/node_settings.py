"""The settings that this node lives by: its file, and over it what was given at run time (KIP-226).

Three places give a broker setting a value: for this broker alone, for all brokers of the cluster, and the file; the
first two are in the metadata and change while the node runs. What is there and cannot be used (another version may
have accepted it) is passed over with a warning: a node does not stop for it.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ottla.base.ports import Workers
from ottla.config.parse import LISTENER_PREFIX, ConfigError, Values, listener_setting
from ottla.config.scopes import Scope, settings
from ottla.config.setting import Dynamic, Setting
from ottla.config.values import Value
from ottla.machines.metadata.image.configs_image import CLUSTER_DEFAULT, ConfigResource, ConfigsImage, ResourceType
from ottla.machines.metadata.image.delta import MetadataDelta

_log = logging.getLogger(__name__)

Watcher: TypeAlias = Callable[[Values, frozenset[str]], None]
"""Is called with all settings, and the keys of those that are not as they were."""


class NodeSettings:
    """`static` is the file; `effective` what counts now. Watchers hear of a change in the order they came.

    `checks` raise `ConfigError` for settings that this node could not use, before they are given: they get all
    settings as they would be, and the keys of those that would change. They may read files, so `workers` run them.
    """

    def __init__(self, node_id: int, static: Values, workers: Workers | None = None) -> None:
        self.node_id = node_id
        self.static = static
        self.effective = static
        self.fetch_max_bytes = static.integer("fetch.max.bytes")
        """As `effective` has it, for who asks at every request."""
        self.checks: list[Watcher] = []
        self._workers = workers
        self._watchers: list[Watcher] = []

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def has_to_check(self, changes: Mapping[str, str | None]) -> bool:
        """Whether settings like these are ones that this node might be unable to use: those of files and keys."""
        return bool(self.checks) and any("ssl." in key for key in changes)

    def find_problem(self, changes: Mapping[str, str | None], then: Callable[[str | None], None]) -> None:
        """`then` hears why this node could not use these settings, later; a value of None is one that is taken away."""
        if self._workers is None:
            then(self.problem_with(changes))
        else:
            self._workers.run(lambda: self.problem_with(changes), then, key=NodeSettings)

    def problem_with(self, changes: Mapping[str, str | None]) -> str | None:
        """The same, at once: for a worker. What it looks at is not changed, but replaced."""
        given = dict(self.effective.given)
        for key, text in changes.items():
            row = broker_row(key)
            if row is None:
                continue
            given.pop(key, None)
            if text is None:
                if key in self.static.given:
                    given[key] = self.static.given[key]
                continue
            try:
                given[key] = row.parse(text)
            except ValueError:
                return None  # The controller says what it must be.
        values = Values(given, settings(Scope.BROKER))
        try:
            for check in self.checks:
                check(values, frozenset(changes))
        except ConfigError as problem:
            return str(problem)
        return None

    def is_cordoned(self, directory: str) -> bool:
        """Whether a log directory gets no new partitions (KIP-1066)."""
        cordoned = self.effective.list("cordoned.log.dirs")
        return directory in cordoned or "*" in cordoned

    def on_metadata(self, configs: ConfigsImage, delta: MetadataDelta) -> None:
        """Committed records may have changed what was given to this broker or to all."""
        if CLUSTER_DEFAULT in delta.configs or ConfigResource(ResourceType.BROKER, str(self.node_id)) in delta.configs:
            self.apply(configs)

    def apply(self, configs: ConfigsImage) -> None:
        given = {
            **self.static.given,
            **_usable(configs.of_cluster(), per_broker=False),
            **_usable(configs.of_broker(self.node_id), per_broker=True),
        }
        before, self.effective = self.effective.given, Values(given, settings(Scope.BROKER))
        self.fetch_max_bytes = self.effective.integer("fetch.max.bytes")
        changed = frozenset(key for key in before.keys() | given.keys() if before.get(key) != given.get(key))
        if changed:
            _log.info("settings changed: %s", ", ".join(sorted(changed)))
            for watcher in self._watchers:
                watcher(self.effective, changed)


def broker_row(key: str) -> Setting | None:
    """The row of a broker setting, or of the one behind `listener.name.<listener>.[<mechanism>.]<key>`."""
    return settings(Scope.BROKER).get(key) or listener_setting(key)


def is_for_one_listener(key: str) -> bool:
    return key.startswith(LISTENER_PREFIX)


def _usable(texts: Mapping[str, str], *, per_broker: bool) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key, text in texts.items():
        row = broker_row(key)
        if row is None:
            continue  # Kafka keeps keys that nobody knows: they may be a plug-in's.
        if row.dynamic is Dynamic.READ_ONLY or (row.dynamic is Dynamic.PER_BROKER and not per_broker):
            _log.warning("%s cannot be set at run time; ignored", key)
            continue
        try:
            values[key] = row.parse(text)
        except ValueError as expected:
            _log.warning("%s is ignored: it must be %s", key, expected)
    return values
