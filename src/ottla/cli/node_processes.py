"""The nodes that run on this machine, found by the command lines of this user's processes.

A node is Python that runs `ottla start` or `kafka-server-start`. Its settings are read where it was started: its
configuration file is looked for from its own working directory. A node whose file is gone still counts, with no id.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

PROC = "/proc"
DEFAULT_DATA = "ottla-data"
"""Of `ottla start`."""
_LIST_TIMEOUT_S = 10
_WITH_VALUE = (
    "--data",
    "--port",
    "--host",
    "--advertise",
    "--metrics",
    "--faults",
    "--log-format",
    "--log-level",
    "--log-file",
)


class NodeProcess(NamedTuple):
    pid: int
    arguments: tuple[str, ...]
    """Of the command: what comes after `start` or `kafka-server-start`."""
    node_id: int | None
    roles: tuple[str, ...]
    data: tuple[str, ...] = ()
    """Its log directories, as absolute paths."""


class Process(NamedTuple):
    """A process of this user, as the system tells of it."""

    pid: int
    words: list[str]
    directory: str | None


def node_processes() -> Iterator[NodeProcess]:
    """By process id. This process and what it cannot look into are left out."""
    for process in own_processes():
        if process.pid != os.getpid() and (node := as_node(process)):
            yield node


def as_node(process: Process) -> NodeProcess | None:
    """None for anything that is not a node."""
    arguments = _arguments(process.words)
    if arguments is None:
        return None
    properties = _properties(arguments, process.directory)
    node_id = properties.get("node.id", "")
    roles = [role.strip() for role in properties.get("process.roles", "").split(",")]
    return NodeProcess(
        process.pid,
        tuple(arguments),
        int(node_id) if node_id.isdecimal() else None,
        tuple(filter(None, roles)),
        tuple(_directories(properties, process.directory)),
    )


def _directories(properties: dict[str, str], directory: str | None) -> Iterator[str]:
    """Relative ones are looked for from where the node was started."""
    for path in (properties.get("log.dirs") or properties.get("log.dir") or "").split(","):
        if path.strip() and (directory is not None or os.path.isabs(path.strip())):
            yield os.path.realpath(os.path.join(directory or "", path.strip()))


def _arguments(words: list[str]) -> list[str] | None:
    """What follows the command, in the ways in which a node may be started."""
    if not words or not os.path.basename(words[0]).startswith("python"):
        return None
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        # Options of Python, of which -X and -W may have their value in the next word.
        rest = rest[2:] if rest[0] in ("-X", "-W") else rest[1:]
    match rest:
        case ["-m", "ottla.cli.main", "start", *arguments]:
            return None if _watches_over_nodes(arguments) else arguments
        case [script, "start", *arguments] if os.path.basename(script) == "ottla":
            return None if _watches_over_nodes(arguments) else arguments
        case [script, *arguments] if os.path.basename(script).removesuffix(".sh") == "kafka-server-start":
            return arguments
    return None


def _watches_over_nodes(arguments: list[str]) -> bool:
    """It is none itself, and ends when they have been stopped."""
    return any(word.partition("=")[0] == "--cores" for word in arguments)


def _properties(arguments: list[str], directory: str | None) -> dict[str, str]:
    """Of the node's settings, those that were given and tell nodes apart."""
    path, overrides, data = None, {}, DEFAULT_DATA
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("--config", "--set", "--override"):
            given = value if equals else next(words, "")
            if name == "--config":
                path = given
            else:
                key, _, text = given.partition("=")
                overrides[key.strip()] = text.strip()
        elif name in _WITH_VALUE:
            given = value if equals else next(words, "")
            if name == "--data":
                data = given
        elif not word.startswith("-"):
            path = word  # kafka-server-start names its file like this
    if path is None:
        properties = {"node.id": "1", "process.roles": "broker,controller", "log.dirs": data}
    else:
        properties = _read(os.path.join(directory or "", path))
    return {**properties, **overrides}


def _read(path: str) -> dict[str, str]:
    from ottla.config.properties import read_properties

    try:
        with open(path, "rb") as file:
            return read_properties(file.read())
    except (OSError, ValueError):
        return {}


def own_processes() -> Iterator[Process]:
    return _from_proc() if os.path.isdir(f"{PROC}/self") else _from_ps()


def _from_proc() -> Iterator[Process]:
    for name in sorted(filter(str.isdecimal, os.listdir(PROC)), key=int):
        try:
            if os.stat(f"{PROC}/{name}").st_uid != os.getuid():
                continue
            with open(f"{PROC}/{name}/cmdline", "rb") as file:
                words = os.fsdecode(file.read()).split("\0")[:-1]
            yield Process(int(name), words, os.readlink(f"{PROC}/{name}/cwd"))
        except OSError:
            continue  # it has ended, or is not ours to see


def _from_ps() -> Iterator[Process]:
    """Where there is no /proc. Words with spaces come apart, and working directories are not reported."""
    from subprocess import run

    listed = run(["ps", "-x", "-o", "pid=,uid=,command="], capture_output=True, text=True, timeout=_LIST_TIMEOUT_S)
    for line in listed.stdout.splitlines():
        pid, uid, *words = line.split()
        if int(uid) == os.getuid():
            yield Process(int(pid), words, None)
