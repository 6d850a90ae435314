"""Asking a token provider by HTTP. It may wait: call it away from the loop (`ClientWorld.aside`)."""

import http.client
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ssl import SSLContext

_MOST_BYTES: Final = 1 << 20


class HttpReply(NamedTuple):
    status: int
    body: bytes


def post(
    url: str,
    headers: Mapping[str, str],
    body: str,
    *,
    connect_timeout_s: float,
    read_timeout_s: float,
    context: "SSLContext | None",
) -> HttpReply:
    """One request. Redirects are not followed, and no more than a megabyte is read. Raises `OSError`."""
    parts = urlsplit(url)
    assert parts.hostname is not None, "a URL without a host was let through"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=connect_timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=connect_timeout_s)
    try:
        connection.connect()
        connection.sock.settimeout(read_timeout_s)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body.encode(), dict(headers))
        response = connection.getresponse()
        return HttpReply(response.status, response.read(_MOST_BYTES))
    except http.client.HTTPException as problem:
        raise OSError(f"{type(problem).__name__}: {problem}") from problem
    finally:
        connection.close()
