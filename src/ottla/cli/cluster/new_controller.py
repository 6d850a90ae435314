"""What kafka-metadata-quorum add-controller needs to know of the new controller, from its file and its directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.failures import Terse
from ottla.config.properties import read_properties

if TYPE_CHECKING:
    from ottla.client.admin.quorum_voters import VoterEndpoint

_NOT_ONE = "Is this a valid controller configuration file?"


class NewController(NamedTuple):
    id: int
    directory_id: str
    endpoints: list[VoterEndpoint]


def read_new_controller(path: str) -> NewController:
    """Raises `Terse` if the file is not that of a formatted controller."""
    settings = read_properties(Path(path).read_bytes())
    return NewController(_node_id(settings), _directory_id(settings), _endpoints(settings))


def _node_id(settings: Mapping[str, str]) -> int:
    text = settings.get("node.id")
    if text is None:
        raise Terse(f"node.id not found in configuration file. {_NOT_ONE}")
    if not text.strip().isdecimal():
        raise Terse(f"node.id was negative in configuration file. {_NOT_ONE}")
    if "controller" not in settings.get("process.roles", ""):
        raise Terse(f"process.roles did not contain 'controller' in configuration file. {_NOT_ONE}")
    return int(text)


def _directory_id(settings: Mapping[str, str]) -> str:
    directory = settings.get("metadata.log.dir") or settings.get("log.dirs", "").split(",")[0]
    if not directory:
        raise Terse(f"Neither metadata.log.dir nor log.dirs were found. {_NOT_ONE}")
    try:
        content = (Path(directory.strip()) / "meta.properties").read_bytes()
    except OSError:
        raise Terse(f"Unable to read meta.properties from {directory}") from None
    directory_id = read_properties(content).get("directory.id")
    if directory_id is None:
        raise Terse(f"No directory id found in {directory}")
    return directory_id


def _endpoints(settings: Mapping[str, str]) -> list[VoterEndpoint]:
    from ottla.client.admin.quorum_voters import VoterEndpoint

    places = {}
    for key in ("listeners", "advertised.listeners"):
        for text in filter(None, settings.get(key, "").split(",")):
            name, _, address = text.strip().partition("://")
            host, _, port = address.rpartition(":")
            places[name.upper()] = (host.strip("[]") or "localhost", int(port))
    names = settings.get("controller.listener.names")
    if not names:
        raise Terse(f"controller.listener.names was not found. {_NOT_ONE}")
    endpoints = []
    for name in names.upper().split(","):
        if name.strip() not in places:
            raise Terse(f"Cannot find information about controller listener name: {name.strip()}")
        endpoints.append(VoterEndpoint(name.strip(), *places[name.strip()]))
    return endpoints
