"""ApiVersions 0-4: what this node serves, and which features the cluster has. The first request of a connection.

A version that we do not know is answered with version 0, UNSUPPORTED_VERSION and the versions that would do, so that
a client from the future can ask again (KIP-511). The client's name goes to its connection, for metrics and logs.

Left out: `zk_migration_ready`, which only a controller that migrates from ZooKeeper would set.
"""

import re
from functools import cache
from typing import Final

from ottla.machines.metadata.image.features import SERVED, FeaturesImage
from ottla.runtime.request import RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client may call itself: metrics are named after it."""

_FIRST_WITH_SOFTWARE: Final = 3
_FIRST_WITH_FEATURES_FROM_ZERO: Final = 4


def answer_api_versions(
    context: RequestContext,
    request: ApiVersionsRequest,
    respond: Respond,
    served: list[ApiVersionsResponse.ApiVersion],
    features: FeaturesImage,
    *,
    features_epoch: int,
) -> None:
    """`served` are the APIs of the listener that the client came to."""
    if context.api_version >= _FIRST_WITH_SOFTWARE and not _introduce(context, request):
        respond(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    respond(
        ApiVersionsResponse(
            api_keys=served,
            supported_features=_supported_features(context.api_version),
            finalized_features_epoch=features_epoch,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in sorted(features.levels.items())
            ],
        )
    )


def handle_unsupported(context: RequestContext, respond: Respond) -> None:
    """A request of an API or version that does not exist. Only ApiVersions has an answer to that; it goes out as
    version 0.
    """
    if context.api_key != ApiKey.API_VERSIONS:
        raise RefusedRequest(f"there is no version {context.api_version} of an API with key {context.api_key}")
    respond(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_api_version(ApiKey.API_VERSIONS)]))


def _introduce(context: RequestContext, request: ApiVersionsRequest) -> bool:
    """Notes who the client says it is; False if that is no name."""
    name, version = request.client_software_name, request.client_software_version
    if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
        return False
    context.connection.software_name = name
    context.connection.software_version = version
    return True


@cache
def served(keys: tuple[ApiKey, ...]) -> list[ApiVersionsResponse.ApiVersion]:
    """The same for every client of a listener, and made once."""
    return [_api_version(key) for key in sorted(keys)]


def _api_version(key: ApiKey) -> ApiVersionsResponse.ApiVersion:
    versions = api(key).advertised_versions
    return ApiVersionsResponse.ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1)


@cache
def _supported_features(api_version: int) -> list[ApiVersionsResponse.SupportedFeatureKey]:
    """Clients before version 4 take a lowest level of 0 for an error, so such features are not shown to them."""
    return [
        ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=supported.lowest, max_version=supported.highest)
        for name, supported in sorted(SERVED.items())
        if supported.lowest > 0 or api_version >= _FIRST_WITH_FEATURES_FROM_ZERO
    ]
