"""DescribeConfigs 1-4, DescribeUserScramCredentials 0 and DescribeAcls 1-3, from the metadata that this node has."""

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.runtime.request import RequestContext, Respond
from ottla.serving.described_acls import described_acls
from ottla.serving.described_configs import DescribedNode, described_configs
from ottla.serving.described_users import described_users
from ottla.serving.node_settings import NodeSettings
from ottla.wire.messages import DescribeAclsRequest, DescribeConfigsRequest, DescribeUserScramCredentialsRequest


def handle_describe_configs(
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    _context: RequestContext,
    request: DescribeConfigsRequest,
    respond: Respond,
) -> None:
    respond(described_configs(DescribedNode(metadata.image, node_settings), request))


def handle_describe_user_scram_credentials(
    metadata: ClusterMetadata, _context: RequestContext, request: DescribeUserScramCredentialsRequest, respond: Respond
) -> None:
    respond(described_users(metadata.image, request))


def handle_describe_acls(
    metadata: ClusterMetadata,
    has_authorizer: bool,
    _context: RequestContext,
    request: DescribeAclsRequest,
    respond: Respond,
) -> None:
    respond(described_acls(metadata.image, request, has_authorizer=has_authorizer))
