"""Whom a client of DescribeCluster asks for (KIP-919): the brokers or the controllers of the cluster."""

from typing import Final

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeClusterResponse

BROKERS: Final = 1
CONTROLLERS: Final = 2


def unsupported_endpoint(endpoint_type: int) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {endpoint_type}"
    )
