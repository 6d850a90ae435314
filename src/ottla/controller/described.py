"""DescribeConfigs 1-4 and DescribeUserScramCredentials 0, which a controller answers as a broker does."""

from ottla.broker.admin.scram import described_users
from ottla.broker.admin.settings.describe_configs import DescribedNode, described_configs
from ottla.controller.controller_server import Asked, ControllerServer
from ottla.runtime.channels import Failed, Then


def describe_configs(server: ControllerServer, asked: Asked, then: Then, _failed: Failed) -> None:
    then(described_configs(DescribedNode(server.image, server.node_settings), asked.request))


def describe_user_scram_credentials(server: ControllerServer, asked: Asked, then: Then, _failed: Failed) -> None:
    then(described_users(server.image, asked.request))
