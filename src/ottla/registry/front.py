"""The HTTP front of the registry: who asks, what they get, and in which form.

Theory of operation. A request is authenticated, found in the API's table, and answered: from the state at once, or
when it is promised. A change that another registry has to decide on is passed on to it as it came, and its status and
body are passed back untouched. Errors have Confluent's form, `{"error_code": …, "message": …}`.

A reply to a read is made once and kept as bytes, by what was asked and in which form, until a record changes the state.
It is asked before whether the client may have it, so only clients that may read everything share them.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ottla.client.promise import Promise
from ottla.registry.access import EVERYTHING, Access
from ottla.registry.api import Answer, Api, LeadsHere, NoContent, NotLeader, Service, answer_bytes
from ottla.registry.json_form import json_bytes
from ottla.registry.refusals import Refused, unknown_leader
from ottla.runtime.http.http_server import Caller, Respond
from ottla.wire.http import HttpRequest, HttpResponse, response_bytes

V1: Final = "application/vnd.schemaregistry.v1+json"
_MEDIA_TYPES: Final = (V1, "application/vnd.schemaregistry+json", "application/json")
_TAKEN: Final = (*_MEDIA_TYPES, "application/octet-stream")
_MOST_KEPT: Final = 20_000
_MOST_KEPT_BYTES: Final = 64 << 20
FORWARDED: Final = "x-forward"
"""What Confluent's registry puts on a request that it passes on."""
ACCEPTS_UNKNOWN: Final = "confluent-accept-unknown-properties"
"""What Confluent's Java client says since it passes over members that it does not know."""
_PASSED_ON: Final = ("content-type", "accept", "authorization", "user-agent", "x-request-id", ACCEPTS_UNKNOWN)
_LATER_MEMBERS: Final = frozenset(("guid", "ts", "deleted", "schemaTags"))


class Gate(Protocol):
    """Who somebody is, and what they may do."""

    def admit(self, request: HttpRequest, caller: Caller) -> Access | Promise[Access]:
        """Raises `Refused` (401), or promises what may be rejected with it."""
        ...

    def challenge(self) -> list[tuple[str, str]]:
        """Headers of a 401."""
        ...


class Forwarder(Protocol):
    """The way to the registry that decides."""

    def pass_on(self, request: HttpRequest) -> Promise[HttpResponse]:
        """Rejected with `Refused` (50003, 50004), or with `LeadsHere`."""
        ...


class Front:
    """`on_state_changed` is to be called for every record that has changed something."""

    def __init__(
        self,
        service: Service,
        forwarder: Forwarder,
        gate: Gate | None = None,
        pages: Mapping[str, Callable[[HttpRequest, Respond], None]] | None = None,
        now_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._api = Api(service)
        self._forwarder = forwarder
        self._gate = gate
        self._pages = pages or {}
        self._now_s = now_s
        self._kept: dict[tuple[str, str | None], bytes] = {}
        self._kept_bytes = 0
        self.statuses: Counter[tuple[str, int]] = Counter()
        """Replies by method and status."""
        self.seconds: Counter[str] = Counter()
        """How long they took, by method."""

    def on_state_changed(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0

    def handle(self, request: HttpRequest, caller: Caller, respond: Respond) -> None:
        """What the HTTP server calls."""
        method = request.method
        if method == "GET" and self._gate is None:
            kept = None if is_strict(request) else self._kept.get((request.target, request.headers.get("accept")))
            if kept is not None:
                self.statuses[method, 200] += 1
                respond(kept)
                return
        began_s = self._now_s()

        def reply(status: int, response: bytes, *body: bytes) -> None:
            self.statuses[method, status] += 1
            self.seconds[method] += self._now_s() - began_s  # type: ignore[assignment]  # A counter of seconds.
            respond(response, *body)

        page = self._pages.get(request.path) if method in ("GET", "HEAD") else None
        if page is not None:
            page(request, lambda response, *body: reply(int(response[9:12]), response, *body))
            return
        try:
            access = EVERYTHING if self._gate is None else self._gate.admit(request, caller)
        except Refused as refused:
            self._refuse(request, refused, reply)
            return
        if isinstance(access, Promise):
            access.on_done(lambda admitted: self._on_admitted(request, admitted, reply))
        else:
            self._answer(request, access, reply)

    def _on_admitted(
        self, request: HttpRequest, admitted: "Promise[Access]", reply: Callable[[int, bytes], None]
    ) -> None:
        if isinstance(admitted.error, Refused):
            self._refuse(request, admitted.error, reply)
        else:
            self._answer(request, admitted.value(), reply)

    def _answer(self, request: HttpRequest, access: Access, reply: Callable[[int, bytes], None]) -> None:
        try:
            media_type = negotiated(request)
            answer = self._api.ask(request.method, request.target, request.body, access)
        except Refused as refused:
            self._refuse(request, refused, reply)
            return
        if isinstance(answer, Promise):
            answer.on_done(lambda done: self._on_answer(request, access, media_type, done, reply))
        else:
            self._give(request, media_type, answer, reply)

    def _on_answer(
        self,
        request: HttpRequest,
        access: Access,
        media_type: str,
        done: "Promise[Any]",
        reply: Callable[[int, bytes], None],
    ) -> None:
        problem = done.error
        if isinstance(problem, Refused):
            self._refuse(request, problem, reply)
        elif isinstance(problem, NotLeader):
            self._pass_on(request, access, reply)
        elif problem is not None:
            self._refuse(request, Refused(500, 500, "Internal Server Error"), reply)
            raise problem
        else:
            self._give(request, media_type, done.value(), reply)

    def _give(self, request: HttpRequest, media_type: str, answer: Answer, reply: Callable[[int, bytes], None]) -> None:
        if isinstance(answer, NoContent):
            reply(204, response_bytes(204, b""))
            return
        if is_strict(request):
            answer = for_strict(request, answer)
        body = answer_bytes(answer)
        response = response_bytes(200, body, media_type, is_head=request.method == "HEAD")
        if request.method == "GET" and self._gate is None and is_kept(request.target) and not is_strict(request):
            self._keep((request.target, request.headers.get("accept")), response)
        reply(200, response)

    def _keep(self, key: tuple[str, str | None], response: bytes) -> None:
        target, accept = key
        size = len(response) + len(target) + len(accept or "")  # A client may ask for nothing, at length.
        if len(self._kept) >= _MOST_KEPT or self._kept_bytes + size > _MOST_KEPT_BYTES:
            self.on_state_changed()
        self._kept[key] = response
        self._kept_bytes += size

    def _refuse(self, request: HttpRequest, refused: Refused, reply: Callable[[int, bytes], None]) -> None:
        headers = self._gate.challenge() if refused.status == 401 and self._gate is not None else ()
        body = error_body(refused.code, refused.message)
        reply(refused.status, response_bytes(refused.status, body, V1, headers, is_head=request.method == "HEAD"))

    # --- passing on ---

    def _pass_on(self, request: HttpRequest, access: Access, reply: Callable[[int, bytes], None]) -> None:
        if FORWARDED in request.headers:
            # The registry that passed it on takes this one for the leader. It would go round in circles.
            self._refuse(request, unknown_leader(), reply)
            return
        self._forwarder.pass_on(request).on_done(lambda done: self._on_passed(request, access, done, reply))

    def _on_passed(
        self,
        request: HttpRequest,
        access: Access,
        done: "Promise[HttpResponse]",
        reply: Callable[[int, bytes], None],
    ) -> None:
        if isinstance(done.error, Refused):
            self._refuse(request, done.error, reply)
            return
        if isinstance(done.error, LeadsHere):
            self._answer(request, access, reply)
            return
        response = done.value()
        media_type = response.headers.get("content-type", V1)
        reply(response.status, response_bytes(response.status, response.body, media_type))


def headers_to_pass_on(request: HttpRequest) -> dict[str, str]:
    return {name: request.headers[name] for name in _PASSED_ON if name in request.headers} | {FORWARDED: "true"}


def is_kept(target: str) -> bool:
    """Whether a reply stays the same until a record changes something: all but what is about this process."""
    return not target.startswith(("/_health", "/master_available", "/v1/metadata"))


def is_strict(request: HttpRequest) -> bool:
    """Whether the client is one of Confluent's for Java from before it took members that it does not know: it fails at
    a reply with one. It has no name of its own, so its platform's tells (`Java/17.0.1`)."""
    headers = request.headers
    return headers.get("user-agent", "").startswith("Java/") and ACCEPTS_UNKNOWN not in headers


def for_strict(request: HttpRequest, answer: Answer) -> Answer:
    """The answer with the members that registries of that time gave."""
    if isinstance(answer, list):
        return [for_strict(request, one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    if request.method == "POST" and request.path.endswith("/versions") and "id" in answer:
        return {"id": answer["id"]}
    return {name: value for name, value in answer.items() if name not in _LATER_MEMBERS}


def error_body(code: int, message: str) -> bytes:
    return json_bytes({"error_code": code, "message": message})


def bad_http(status: int, reason: str) -> bytes:
    """The response to a malformed request."""
    return response_bytes(status, error_body(status, reason), V1)


def negotiated(request: HttpRequest) -> str:
    """The media type of the reply. Raises `Refused` (406, 415)."""
    given = request.headers.get("content-type")
    if given and request.body and given.partition(";")[0].strip().lower() not in _TAKEN:
        raise Refused(415, 415, "HTTP 415 Unsupported Media Type")
    accept = request.headers.get("accept")
    if not accept or accept == "*/*":
        return V1
    best, best_quality = "", 0.0
    for one in accept.split(","):
        media_type, _, rest = one.partition(";")
        media_type, quality = media_type.strip().lower(), _quality(rest)
        if media_type in ("*/*", "application/*"):
            media_type, quality = V1, quality * 0.99
        if media_type in _MEDIA_TYPES and quality > best_quality:
            best, best_quality = media_type, quality
    if not best:
        raise Refused(406, 406, "HTTP 406 Not Acceptable")
    return best


def _quality(parameters: str) -> float:
    for one in parameters.split(";"):
        name, _, value = one.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
