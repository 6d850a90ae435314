"""Connectors in files: Kafka's `.properties`, JSON as it is posted, or YAML of the same form.

A file is one connector, `{"name": …, "config": {…}}` or the configuration itself with its `name`; without a name it is
called as the file is. YAML may have several, divided by `---`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.config.properties import read_properties
from ottla.connect.errors import ConnectError

SUFFIXES: Final = (".properties", ".json", ".yaml", ".yml")
_STATES: Final = ("running", "paused", "stopped")


class FileConnector(NamedTuple):
    name: str
    config: dict[str, str]
    initial_state: str | None
    path: Path


class BadFile(ConnectError):
    """A file that is no connector."""


def read_connectors(path: Path) -> list[FileConnector]:
    """Those of a file. Raises `BadFile` or `OSError`."""
    content = path.read_bytes()
    if path.suffix == ".properties":
        found: list[Any] = [read_properties(content)]
    elif path.suffix == ".json":
        found = [_json(path, content)]
    elif path.suffix in (".yaml", ".yml"):
        found = _yaml(path, content)
    else:
        raise BadFile(f"{path}: the name must end in one of {', '.join(SUFFIXES)}")
    return [_connector(path, one) for one in found]


def read_directory(directory: Path) -> dict[str, FileConnector]:
    """All connectors of a directory and those below it, by name. Raises `BadFile` or `OSError`."""
    connectors: dict[str, FileConnector] = {}
    for path in _files(directory):
        for one in read_connectors(path):
            if one.name in connectors:
                raise BadFile(f"{path}: the connector {one.name} is in {connectors[one.name].path} too")
            connectors[one.name] = one
    return connectors


def _files(directory: Path) -> Iterator[Path]:
    if not directory.is_dir():
        raise BadFile(f"{directory} is not a directory")
    yield from sorted(path for path in directory.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _json(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as problem:
        raise BadFile(f"{path} is not JSON: {problem}") from None


def _yaml(path: Path, content: bytes) -> list[Any]:
    try:
        import yaml
    except ImportError:
        raise BadFile(f"{path}: YAML needs PyYAML: pip install 'ottla[connect]', or use JSON") from None
    try:
        return [one for one in yaml.safe_load_all(content) if one is not None]
    except yaml.YAMLError as problem:
        raise BadFile(f"{path} is not YAML: {problem}") from None


def _connector(path: Path, found: Any) -> FileConnector:
    if not isinstance(found, dict):
        raise BadFile(f"{path}: a connector is an object with a name and a config")
    state = None
    if isinstance(found.get("config"), dict):
        extra = [key for key in found if key not in ("name", "config", "initial_state")]
        if extra:
            raise BadFile(f"{path}: {extra[0]} is no member of a connector: name, config, initial_state are")
        name, given, state = found.get("name"), found["config"], found.get("initial_state")
    else:
        name, given = found.get("name"), found
    if state is not None and str(state).lower() not in _STATES:
        raise BadFile(f"{path}: initial_state is {state}; it must be one of {', '.join(_STATES)}")
    config = {str(key): _text(path, str(key), value) for key, value in given.items() if value is not None}
    shown = str(name or config.get("name") or path.stem)
    if config.setdefault("name", shown) != shown:
        raise BadFile(f"{path}: the connector is called {shown}, and {config['name']} in its config")
    return FileConnector(shown, config, None if state is None else str(state), path)


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ",".join(map(str, value))
    if isinstance(value, dict | list):
        raise BadFile(f"{path}: the value of {key} must be a text or a list of texts")
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)
