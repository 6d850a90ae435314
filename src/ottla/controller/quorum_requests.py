"""What the replicas of the metadata log ask of each other, on the listeners of controllers (KIP-595, KIP-630).

Vote 0-2, BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1, Fetch 4-18 of the metadata log alone, and FetchSnapshot 0-1.
`ottla.runtime.metadata` answers; brokers and their clients fetch from the listeners of brokers.
"""

from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_answers import QuorumAnswers
from ottla.runtime.metadata.replication.metadata_leader import MetadataLeader


def vote(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    _answers(server).vote(asked.request, asked.version, then, asked.listener)


def begin_quorum_epoch(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    _answers(server).begin_epoch(asked.request, asked.version, then, asked.listener)


def end_quorum_epoch(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    _answers(server).end_epoch(asked.request, asked.version, then, asked.listener)


def fetch(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    _leader(server).fetch(asked.request, asked.version, then, asked.listener)


def fetch_snapshot(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    _leader(server).fetch_snapshot(asked.request, asked.version, then, asked.listener)


def _answers(server: ControllerServer) -> QuorumAnswers:
    assert server.replica is not None and server.replica.answers is not None, "a node without a network was asked"
    return server.replica.answers


def _leader(server: ControllerServer) -> MetadataLeader:
    assert server.replica is not None and server.replica.leader is not None, "a node without a network was asked"
    return server.replica.leader
