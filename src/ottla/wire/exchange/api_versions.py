"""What a node serves, and in which version a request goes to it (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla import __version__
from ottla.base.errors import LocalProtocolError, ProtocolError
from ottla.base.ports import Buffer
from ottla.wire import messages
from ottla.wire.apis import ApiKey, all_apis
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.correlation import out_of_order
from ottla.wire.exchange.open_request import Refused
from ottla.wire.frame import correlation_id_of, decode_response, encode_request

_OLDEST_FORM: Final = 0


class NotServed(LocalProtocolError):
    """The node serves no version of the API that the request could take."""


class ApiVersions(NamedTuple):
    """One node's answer. Versions are inclusive bounds by API key, feature levels are those that are finalized."""

    versions: Mapping[int, tuple[int, int]]
    supported_features: Mapping[str, tuple[int, int]] = {}
    finalized_features: Mapping[str, int] = {}
    finalized_features_epoch: int = -1

    def newest(self, api_key: int, newest: int | None = None) -> int:
        """The highest version that both sides know, at most `newest`. Raises `NotServed`."""
        ours = all_apis()[api_key].stable_versions
        if api_key not in self.versions:
            raise NotServed(f"the node does not serve {ApiKey(api_key).name}")
        oldest_there, newest_there = self.versions[api_key]
        newest_here = ours[-1] if newest is None else min(ours[-1], newest)
        most = min(newest_here, newest_there)
        if most < max(ours[0], oldest_there):
            raise NotServed(
                f"the node serves versions {oldest_there} to {newest_there} of {ApiKey(api_key).name}, "
                f"and this request takes one of {ours[0]} to {newest_here}"
            )
        return most

    def serves(self, api_key: int, version: int = 0) -> bool:
        """Whether an API is served in that version or a newer one which this side knows, too."""
        if api_key not in self.versions:
            return False
        return min(self.versions[api_key][1], all_apis()[api_key].stable_versions[-1]) >= version


class VersionsRequest:
    """Asks a node for its versions: the first request of a connection.

    A node that is too old for the newest version of the request answers in the oldest one, with the versions of this
    one API: then it is asked once more.
    """

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._version = all_apis()[ApiKey.API_VERSIONS].stable_versions[-1]
        self._correlation_id = 0

    def encoded(self, correlation_id: int) -> bytes:
        """The number is one that no other request of the connection has: a second answer must not pass for theirs."""
        self._correlation_id = correlation_id
        request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        return encode_request(request, self._version, correlation_id, self._client_id)

    def on_frame(self, frame: Buffer) -> ApiVersions | None:
        """What the node serves; None if it has to be asked again. Raises `Refused` or `ProtocolError`."""
        correlation_id = correlation_id_of(frame)
        if correlation_id != self._correlation_id:
            raise out_of_order(correlation_id, self._correlation_id)
        response: Any
        try:
            _, response = decode_response(messages.ApiVersionsResponse, frame, self._version)
        except ProtocolError:
            _, response = decode_response(messages.ApiVersionsResponse, frame, _OLDEST_FORM)
        served = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > _OLDEST_FORM:
            self._version = min(served.get(ApiKey.API_VERSIONS, (0, _OLDEST_FORM))[1], self._version - 1)
            return None
        if response.error_code:
            raise Refused(response.error_code)
        return ApiVersions(
            served,
            {one.name: (one.min_version, one.max_version) for one in response.supported_features},
            {one.name: one.max_version_level for one in response.finalized_features},
            response.finalized_features_epoch,
        )
