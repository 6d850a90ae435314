"""What a broker serves, and in which version a request goes to it (KIP-35, KIP-511, KIP-584)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla import __version__
from ottla.base.errors import ProtocolError
from ottla.base.ports import Buffer
from ottla.client.errors import UnsupportedVersion, error_for
from ottla.wire.apis import ApiKey, all_apis
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.messages import ApiVersionsRequest, ApiVersionsResponse

_OLDEST_FORM: Final = 0


class ApiVersions(NamedTuple):
    """One broker's answer. Versions are inclusive bounds by API key, feature levels are those that are finalized."""

    versions: Mapping[int, tuple[int, int]]
    supported_features: Mapping[str, tuple[int, int]] = {}
    finalized_features: Mapping[str, int] = {}
    finalized_features_epoch: int = -1

    def newest(self, api_key: int, newest: int | None = None) -> int:
        """The highest version that both sides know, at most `newest`. Raises `UnsupportedVersion`."""
        ours = all_apis()[api_key].stable_versions
        if api_key not in self.versions:
            raise UnsupportedVersion(f"the broker does not serve {ApiKey(api_key).name}")
        oldest_there, newest_there = self.versions[api_key]
        most = min(ours[-1], newest_there) if newest is None else min(ours[-1], newest_there, newest)
        if most < max(ours[0], oldest_there):
            asked = f"{ours[0]} to {ours[-1] if newest is None else min(newest, ours[-1])}"
            raise UnsupportedVersion(
                f"the broker serves versions {oldest_there} to {newest_there} of {ApiKey(api_key).name}, "
                f"and this request takes one of {asked}"
            )
        return most

    def serves(self, api_key: int, version: int = 0) -> bool:
        """Whether an API is served in that version or a newer one which this client knows, too."""
        if api_key not in self.versions:
            return False
        return min(self.versions[api_key][1], all_apis()[api_key].stable_versions[-1]) >= version


class Negotiation:
    """Asks a broker for its versions.

    A broker that is too old for the newest form of the question answers in the oldest form, with the versions of this
    one API: then it is asked once more.
    """

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._version = all_apis()[ApiKey.API_VERSIONS].stable_versions[-1]

    def question(self) -> bytes:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        return encode_request(request, self._version, 0, self._client_id)

    def on_frame(self, frame: Buffer) -> ApiVersions | None:
        """What the broker serves; None if `question` is to be sent again. Raises `KafkaError` or `ProtocolError`."""
        try:
            _, response = decode_response(ApiVersionsResponse, frame, self._version)
        except ProtocolError:
            _, response = decode_response(ApiVersionsResponse, frame, _OLDEST_FORM)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > _OLDEST_FORM:
            known = {one.api_key: one.max_version for one in response.api_keys}
            self._version = min(known.get(ApiKey.API_VERSIONS, _OLDEST_FORM), self._version - 1)
            return None
        if response.error_code:
            raise error_for(response.error_code)
        return _api_versions(response)


def _api_versions(response: Any) -> ApiVersions:
    return ApiVersions(
        {one.api_key: (one.min_version, one.max_version) for one in response.api_keys},
        {one.name: (one.min_version, one.max_version) for one in response.supported_features},
        {one.name: one.max_version_level for one in response.finalized_features},
        response.finalized_features_epoch,
    )
