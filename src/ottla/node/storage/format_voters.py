"""The first voters of a quorum whose voters are data (KIP-853), as they are given on a command line.

0@example.com:8082:JEXY6aqzQY-32P5TStzaFg,1@[::1]:8083:MvDxzVmcRsaTz33bUuRU6A
"""

import re

from ottla.base.errors import StorageError
from ottla.base.ids import parse_uuid
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

_VOTER = re.compile(r"(?P<id>[0-9]+)@(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]+):(?P<directory>.+)")


class WrongVoters(StorageError):
    """A list of voters that is not one."""


def parse_initial_controllers(text: str, listener: str) -> VoterSet:
    """`listener` is the name under which all of them listen: the first of `controller.listener.names`."""
    voters = [_parse_voter(part.strip(), listener) for part in text.strip().split(",") if part.strip()]
    if not voters:
        raise WrongVoters("No voters given.")
    for voter in voters:
        if sum(other.key.id == voter.key.id for other in voters) > 1:
            raise WrongVoters(f"Node id {voter.key.id} was specified more than once.")
    return VoterSet(voters)


def _parse_voter(text: str, listener: str) -> Voter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise WrongVoters(f"{text}: a voter is given as id@hostname:port:directory")
    port = int(match["port"])
    if port > 65535:
        raise WrongVoters(f"{text}: Invalid port {port} in dynamic voter string.")
    try:
        directory_id = parse_uuid(match["directory"])
    except ValueError as problem:
        raise WrongVoters(f"{text}: Failed to parse directory ID in dynamic voter string.") from problem
    host = match["v6"] or match["host"]
    return Voter(ReplicaKey(int(match["id"]), directory_id), (Endpoint(listener.upper(), host, port),))
