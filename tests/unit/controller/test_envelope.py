"""Envelopes (KIP-590): a broker passes on what a client asked, and hands the bytes of the reply back to it.

The errors are those of Apache Kafka 4.3.1's controller for the same envelopes.
"""

from ipaddress import ip_address

import pytest

from ottla.apis.table import APIS, FORWARDED
from ottla.runtime.request import ClientConnection
from ottla.wire.codec import encode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.messages import (
    AssignReplicasToDirsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DefaultPrincipalData,
    EnvelopeRequest,
    MetadataRequest,
)
from tests.unit.broker.admin_node import AdminNode

ANN = b"\0\0" + encode(DefaultPrincipalData(type="User", name="ann"), 0)
SOMEWHERE = ip_address("10.1.2.3").packed


def create(name="orders", version=7, timeout_ms=1000):
    topics = [CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    return framed(CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms), version)


def framed(request, version):
    return encode_request(request, version, 77, "the client")[4:]


@pytest.fixture
def node():
    node = AdminNode()
    node.client = ClientConnection(1, "CONTROLLER", "127.0.0.1")
    return node


def send(node, data, principal=ANN, host=SOMEWHERE):
    return node.send(EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=host), 0)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_request_inside_is_answered_in_its_own_version_with_its_own_correlation_id(node, version):
    reply = send(node, create(version=version))
    assert reply.error_code == ErrorCode.NONE
    correlation_id, inside = decode_response(CreateTopicsResponse, reply.response_data, version)
    assert correlation_id == 77
    assert [(topic.name, topic.error_code) for topic in inside.topics] == [("orders", ErrorCode.NONE)]
    assert "orders" in node.image.topics.by_name


def test_it_is_carried_out_on_the_clients_behalf(node, monkeypatch):
    callers = []

    def answer(_server, asked, then, _failed):
        callers.append(asked.caller)
        then(CreateTopicsResponse())

    monkeypatch.setattr("ottla.controller.envelope.answer", answer)
    send(node, create())
    send(node, create(), host=ip_address("::1").packed)
    assert callers == [("User:ann", "10.1.2.3", "the client", False), ("User:ann", "::1", "the client", False)]


def test_what_is_refused_inside_is_the_clients_reply(node):
    reply = send(node, create(timeout_ms=0))
    assert reply.error_code == ErrorCode.NONE
    _, inside = decode_response(CreateTopicsResponse, reply.response_data, 7)
    assert [topic.error_code for topic in inside.topics] == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_controller_that_is_not_the_active_one_says_so_on_the_envelope(node):
    node.log.is_away = True
    reply = send(node, create())
    assert (reply.error_code, reply.response_data) == (ErrorCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("data", "principal", "host", "error"),
    [
        (create(), None, SOMEWHERE, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (create(), b"\0", SOMEWHERE, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (create(), ANN[:-2], SOMEWHERE, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (create(), b"\0\x09" + ANN[2:], SOMEWHERE, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (create(), ANN, b"123", ErrorCode.INVALID_REQUEST),
        (create()[:-3], ANN, SOMEWHERE, ErrorCode.UNSUPPORTED_VERSION),
        (b"", ANN, SOMEWHERE, ErrorCode.UNSUPPORTED_VERSION),
        (framed(MetadataRequest(), 12), ANN, SOMEWHERE, ErrorCode.INVALID_REQUEST),
        (framed(AssignReplicasToDirsRequest(), 0), ANN, SOMEWHERE, ErrorCode.INVALID_REQUEST),
        (b"\0\x13\0\x63" + create()[4:], ANN, SOMEWHERE, ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=[
        "no principal",
        "half a version",
        "half a principal",
        "a principal of the future",
        "no address",
        "half a request",
        "nothing",
        "not for controllers",
        "not for clients",
        "a version of the future",
    ],
)
def test_an_envelope_that_cannot_be_opened_says_why(node, data, principal, host, error):
    reply = send(node, data, principal, host)
    assert (reply.error_code, reply.response_data) == (error, None)
    assert node.log.asked == 0


def test_what_may_be_inside_is_answered():
    forwarded = [row for row in APIS.values() if row.may_be_forwarded]
    assert forwarded
    assert [row.key for row in forwarded if row.controller is None or row.controller.takes_connection] == []
    assert [row.key for row in APIS.values() if row.broker == FORWARDED and not row.may_be_forwarded] == []
