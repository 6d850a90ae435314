"""CreateAcls 1-3, DeleteAcls 1-3 and DescribeAcls 1-3, as a controller answers them (KIP-140)."""

from ottla.controller.committed_decisions import decide
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then
from ottla.serving.described_acls import check_known, described_acls, without_authorizer


def alter_acls(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    check_known(asked.request)
    if server.gate is None:
        then(without_authorizer(asked.request, asked.version))
    else:
        decide(server, asked, then, failed)


def describe_acls(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    then(described_acls(server.image, asked.request, has_authorizer=server.gate is not None))
