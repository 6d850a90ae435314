"""Plug-ins as the REST interface shows them: connectors, converters, transforms, predicates, config providers.

Connectors come from `ottla.connect.plugins`, which knows them by class name and by entry point; converters and
transforms from their tables. A worker is given its plug-ins, so tests bring their own.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from ottla.config.setting import Setting
from ottla.connect.converters import by_name as converters
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption
from ottla.connect.transforms import by_name as transforms

Problems = Sequence[tuple[str, str]]
HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_PROVIDERS: Final = "org.apache.kafka.common.config.provider."


class ConnectorPlugin(NamedTuple):
    """A connector that there is."""

    class_name: str
    type: str
    """`source` or `sink`."""
    version: str | None
    load: Callable[[], "LoadedPlugin"]
    """Raises `InvalidOption` if something that it needs is not installed."""


class LoadedPlugin(NamedTuple):
    settings: Sequence[Setting]
    validate: Callable[[Mapping[str, str]], Problems]


class Plugins(Protocol):
    def connectors(self) -> Sequence[ConnectorPlugin]: ...

    def find(self, name: str) -> ConnectorPlugin:
        """By class name or alias. Raises `InvalidOption`, in Kafka's words."""
        ...


class InstalledPlugins:
    """Those of this installation. `version` is the program's."""

    def __init__(self, version: str) -> None:
        """Raises `ConnectError` if what connectors need is not installed."""
        self._version = version
        try:
            self._plugins: Any = import_module("ottla.connect.plugins")
        except ImportError as problem:
            raise ConnectError(f"connectors cannot be loaded: {problem}; pip install 'ottla[connect]'") from None

    def connectors(self) -> Sequence[ConnectorPlugin]:
        return [self._plugin(kind) for kind in self._plugins.connectors()]

    def find(self, name: str) -> ConnectorPlugin:
        return self._plugin(self._plugins.find_connector(name))

    def _plugin(self, kind: Any) -> ConnectorPlugin:
        def load() -> LoadedPlugin:
            found = kind.load()
            return LoadedPlugin(found.settings, found.validate)

        return ConnectorPlugin(kind.class_name, kind.type, kind.version or self._version, load)


class PluginRow(NamedTuple):
    class_name: str
    type: str
    version: str | None
    settings: Sequence[Setting]


def other_plugins(version: str) -> list[PluginRow]:
    """All that are not connectors, in the order of Kafka Connect's list."""
    rows = [PluginRow(kind.class_name, "transformation", version, kind.options) for kind in transforms.TRANSFORMS]
    rows += (PluginRow(kind.class_name, "predicate", version, kind.options) for kind in transforms.PREDICATES)
    rows += (PluginRow(kind.class_name, "converter", version, kind.options) for kind in converters.KINDS)
    rows += (PluginRow(kind.class_name, "header_converter", version, kind.options) for kind in converters.KINDS)
    rows.append(PluginRow(HEADER_CONVERTER, "header_converter", version, ()))
    return sorted(rows, key=lambda row: (_ORDER[row.type], row.class_name))


_ORDER: Final = {"transformation": 0, "predicate": 1, "converter": 2, "header_converter": 3}


def settings_of(plugins: Plugins, name: str) -> tuple[str, Sequence[Setting]] | None:
    """What a plug-in is, and its settings; None if there is no such. Raises `InvalidOption` if it cannot be loaded."""
    for row in other_plugins(""):
        if name in (row.class_name, row.class_name.rpartition(".")[2]):
            return row.type, row.settings
    try:
        found = plugins.find(name)
    except InvalidOption:
        return None
    return found.type, found.load().settings


def task_class_of(class_name: str) -> str:
    """What Kafka Connect would write as the class of the connector's tasks; Debezium's keep the whole name."""
    if class_name.startswith("io.debezium."):
        return f"{class_name}Task"
    return f"{class_name.removesuffix('Connector')}Task"
