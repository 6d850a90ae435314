"""HTTP for the REST interface: finding what was asked for, passing changes on to the leader, errors in Connect's form.

A change that reaches a worker which does not lead is sent to the leader as it came, and its reply is given back
untouched. Once: a request that was passed on and finds no leader here is refused, so that none goes round in circles.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ottla.client.http.http_client import HttpClient, HttpFailed, Origin
from ottla.client.promise import Promise, spawn
from ottla.connect.rest.api import Answer, Api, Asked, Operation, find
from ottla.connect.rest.login import Login
from ottla.connect.rest.metrics import metrics_page
from ottla.connect.rest.requests import path_parts, query_of
from ottla.connect.worker.records import json_bytes
from ottla.connect.worker.refusals import Refused, no_leader, timed_out
from ottla.connect.worker.worker import REQUEST_MS, NotLeader, Worker
from ottla.runtime.exposition import CONTENT_TYPE
from ottla.runtime.http.http_server import Caller, Respond
from ottla.wire.http import HttpRequest, response_bytes

_log = logging.getLogger(__name__)

JSON: Final = "application/json"
FORWARDED: Final = "x-ottla-forwarded"
_PASSED_ON: Final = ("content-type", "accept", "authorization", "user-agent")
_LEAST_LEADER_MS: Final = 2_000
_LOOK_MS: Final = 100


class Front:
    """`login` is None where everybody may do everything."""

    def __init__(self, worker: Worker, client: HttpClient, login: Login | None = None) -> None:
        self._worker = worker
        self._api = Api(worker)
        self._client = client
        self._login = login
        self.statuses: Counter[tuple[str, int]] = Counter()
        """Replies by method and status."""

    def handle(self, request: HttpRequest, caller: Caller, respond: Respond) -> None:
        """What the HTTP server calls."""
        late = timed_out("busy")
        outcome = self._worker.world.within(spawn(self._answer(request, caller)), REQUEST_MS, lambda: late)

        def reply(done: "Promise[bytes]") -> None:
            try:
                if isinstance(done.error, Refused):
                    response = refusal_bytes(request, done.error, self._challenge(done.error))
                else:
                    response = done.value()
            except Exception as problem:  # Whatever it is, the client hears of it.
                _log.error("the request %s %s failed", request.method, request.path, exc_info=problem)
                response = refusal_bytes(request, Refused(500, "The request failed; the worker's log says why"))
            self.statuses[request.method, int(response[9:12])] += 1
            respond(response)

        outcome.on_done(reply)

    def _challenge(self, refused: Refused) -> list[tuple[str, str]]:
        return self._login.challenge() if refused.status == 401 and self._login is not None else []

    async def _answer(self, request: HttpRequest, caller: Caller) -> bytes:
        operation, names, methods = find(request.method, path_parts(request.path))
        if self._login is not None:
            is_one = operation is not None and operation.path.startswith("/connectors/")
            await self._login.admit(request, caller, names["name"] if is_one else None)
        if request.path == "/metrics" and request.method in ("GET", "HEAD"):
            page = metrics_page(self._worker, self.statuses).encode()
            return response_bytes(200, page, CONTENT_TYPE, is_head=request.method == "HEAD")
        if operation is None and methods and request.method == "OPTIONS":
            allowed = dict.fromkeys((*methods, *(("HEAD",) if "GET" in methods else ()), "OPTIONS"))
            return response_bytes(200, ", ".join(allowed).encode(), "text/plain", [("Allow", ",".join(allowed))])
        if operation is None:
            problem = "405 Method Not Allowed" if methods else "404 Not Found"
            raise Refused(int(problem[:3]), f"HTTP {problem}")
        check_media_types(request)
        if not self._worker.is_loaded and operation.path not in ("/", "/health"):
            raise Refused(503, self._worker.why_not_ready)
        asked = Asked(names, query_of(request.target), request.body, self._url(request))
        try:
            answer = await operation.answer(self._api, asked)
        except NotLeader:
            return await self._pass_on(request, operation, asked)
        return answer_bytes(request, answer)

    def _url(self, request: HttpRequest) -> str:
        host = request.headers.get("host")
        return self._worker.identity.url if not host else f"{self._worker.identity.scheme}://{host}"

    async def _pass_on(self, request: HttpRequest, operation: Operation, asked: Asked) -> bytes:
        """Between two leaders there is none to ask for a moment: that is waited for."""
        worker = self._worker
        if FORWARDED in request.headers:
            raise no_leader()
        ends_s = worker.world.now_s() + _LEAST_LEADER_MS / 1000
        while True:
            leader = worker.leader
            if worker.leads:
                try:
                    return answer_bytes(request, await operation.answer(self._api, asked))
                except NotLeader:
                    continue
            if leader is not None and leader.url != worker.identity.url:
                headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
                try:
                    response = await self._client.ask(
                        Origin(leader.scheme, leader.host, leader.port),
                        request.method,
                        request.target,
                        request.body if request.method != "DELETE" else None,
                        {**headers, FORWARDED: "true"},
                        repeatable=False,
                    )
                except HttpFailed as failed:
                    if failed.was_sent:
                        raise Refused(500, f"IO Error trying to forward REST request: {failed}") from None
                else:
                    location = response.headers.get("location")
                    return response_bytes(
                        response.status,
                        response.body,
                        response.headers.get("content-type"),
                        [] if location is None else [("Location", location)],
                    )
            if worker.world.now_s() >= ends_s:
                raise no_leader()
            await worker.world.sleep(_LOOK_MS)


def check_media_types(request: HttpRequest) -> None:
    """Raises `Refused`."""
    given = request.headers.get("content-type")
    if given and request.body and given.partition(";")[0].strip().lower() not in (JSON, ""):
        raise Refused(415, "HTTP 415 Unsupported Media Type")
    accepted = [one.partition(";")[0].strip().lower() for one in request.headers.get("accept", "*/*").split(",")]
    if not any(one in ("", "*/*", "application/*", JSON) for one in accepted):
        raise Refused(406, "HTTP 406 Not Acceptable")


def answer_bytes(request: HttpRequest, answer: Answer) -> bytes:
    headers = [] if answer.location is None else [("Location", answer.location)]
    if answer.body is None:
        return response_bytes(answer.status, b"", None, headers)
    is_head = request.method == "HEAD"
    return response_bytes(answer.status, json_bytes(answer.body), JSON, headers, is_head=is_head)


def refusal_bytes(request: HttpRequest, refused: Refused, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    body = json_bytes({"error_code": refused.status, "message": refused.message})
    return response_bytes(refused.status, body, JSON, headers, is_head=request.method == "HEAD")


def bad_http(status: int, reason: str) -> bytes:
    """The response to a malformed request."""
    return response_bytes(status, json_bytes({"error_code": status, "message": reason}), JSON)
