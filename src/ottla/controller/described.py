"""DescribeConfigs 1-4 and DescribeUserScramCredentials 0, which a controller answers as a broker does."""

from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then
from ottla.serving.described_configs import DescribedNode, described_configs
from ottla.serving.described_users import described_users


def describe_configs(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    then(described_configs(DescribedNode(server.image, server.node_settings), asked.request))


def describe_user_scram_credentials(
    server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed
) -> None:
    then(described_users(server.image, asked.request))
