"""What the other node serves, and in which version a request goes to it (KIP-35, KIP-511)."""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Mapping
from typing import Final

from ottla import __version__
from ottla.base.errors import ProtocolError
from ottla.base.ports import Buffer
from ottla.wire import messages
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request

_OLDEST_FORM: Final = 0

ServedVersions = Mapping[int, tuple[int, int]]
"""Oldest and newest version by API key."""


def version_for(served: ServedVersions, api_key: int, newest: int) -> int | None:
    """The highest version that both nodes know, `newest` at most; None if there is none."""
    ours = api(api_key).stable_versions
    oldest_there, newest_there = served.get(api_key, (0, -1))
    most = min(newest, ours[-1], newest_there)
    return most if most >= max(ours[0], oldest_there) else None


class VersionQuestion:
    """Asks a node for its versions: the first request of a connection.

    A node that is too old for the newest form of the question answers in the oldest form, with the versions of this one
    API: then it is asked once more.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._version = api(ApiKey.API_VERSIONS).stable_versions[-1]

    def encoded(self) -> bytes:
        request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        return encode_request(request, self._version, 0, self._client_id)

    def on_frame(self, frame: Buffer) -> ServedVersions | None:
        """What the node serves; None if the question is to be sent again. Raises `ProtocolError`."""
        try:
            _, response = decode_response(messages.ApiVersionsResponse, frame, self._version)
        except ProtocolError:
            _, response = decode_response(messages.ApiVersionsResponse, frame, _OLDEST_FORM)
        served = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > _OLDEST_FORM:
            self._version = min(served.get(ApiKey.API_VERSIONS, (0, _OLDEST_FORM))[1], self._version - 1)
            return None
        if response.error_code:
            raise ProtocolError(f"the node refuses to tell its versions: {ErrorCode(response.error_code).name}")
        return served
