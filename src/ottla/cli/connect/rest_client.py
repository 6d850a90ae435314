"""Asks a running worker, ours or Kafka Connect's, at its REST interface."""

import base64
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ottla.connect.errors import ConnectError

URL_VARIABLE: Final = "CONNECT_REST_URL"
DEFAULT_URL: Final = "http://127.0.0.1:8083"
_TIMEOUT_S: Final = 95.0


class WorkerRefused(ConnectError):
    """`status` is HTTP's, 0 if nobody answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RestClient:
    """`basic_auth` is USER:PASSWORD; `ca` a file of certificates to trust; `token` a bearer token."""

    def __init__(
        self, url: str, basic_auth: str | None = None, ca: str | None = None, token: str | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WorkerRefused(0, f"{url}: the worker's URL must be http://HOST:PORT or https://HOST:PORT")
        self.url = url.rstrip("/")
        self._parts = parts
        self._headers = {"Accept": "application/json"}
        if basic_auth is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(basic_auth.encode()).decode()}"
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._ca = ca

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context(cafile=self._ca)
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What is answered; None for nothing. Raises `WorkerRefused`."""
        data = None if body is None else json.dumps(body)
        headers = {**self._headers, **({} if data is None else {"Content-Type": "application/json"})}
        connection = self._connection()
        try:
            connection.request(method, f"{self._parts.path.rstrip('/')}{path}", data, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as problem:
            raise WorkerRefused(0, f"cannot reach the worker at {self.url}: {problem}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise WorkerRefused(response.status, _message(content, response.status))
        return json.loads(content) if content else None

    def config_of(self, name: str) -> Mapping[str, str] | None:
        """None if there is no such connector."""
        try:
            found: Mapping[str, str] = self.ask("GET", f"/connectors/{quote(name, safe='')}/config")
            return found
        except WorkerRefused as refused:
            if refused.status == 404:
                return None
            raise


def _message(content: bytes, status: int) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"


def default_url() -> str:
    return os.environ.get(URL_VARIABLE, DEFAULT_URL)
