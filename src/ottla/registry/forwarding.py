"""Passes changes on to the registry that decides on them, and what it says back.

Between two leaders there is nobody to ask. A request waits for the next one, for a short time; then it is refused. One
that may have reached a leader is not sent to another: only what never arrived is.
"""

from collections.abc import Callable
from typing import Final

from ottla.client.http.http_client import HttpClient, HttpFailed, Origin
from ottla.client.promise import Promise, spawn
from ottla.client.world import ClientWorld
from ottla.registry.api import LeadsHere
from ottla.registry.election import Identity
from ottla.registry.front import headers_to_pass_on
from ottla.registry.refusals import forwarding_failed, unknown_leader
from ottla.wire.http import HttpRequest, HttpResponse

WAIT_S: Final = 2.0
_LOOK_MS: Final = 100
_NO_LEADER: Final = b'"error_code":50004'


class LeaderForwarder:
    """`leader` is who decides, if that is known; `leads` whether that is this registry."""

    def __init__(
        self,
        world: ClientWorld,
        client: HttpClient,
        leader: Callable[[], Identity | None],
        leads: Callable[[], bool],
        own_url: Callable[[], str],
    ) -> None:
        self._world = world
        self._client = client
        self._leader = leader
        self._leads = leads
        self._own_url = own_url
        self.passed_on = 0

    def pass_on(self, request: HttpRequest) -> Promise[HttpResponse]:
        """Rejected with `Refused` (50003, 50004), or with `LeadsHere`."""
        return spawn(self._pass_on(request))

    async def _pass_on(self, request: HttpRequest) -> HttpResponse:
        deadline_s = self._world.now_s() + WAIT_S
        problem = ""
        while True:
            leader = self._leader()
            if self._leads():
                raise LeadsHere
            if leader is not None and leader.url != self._own_url():
                try:
                    response = await self._send(request, leader)
                except HttpFailed as failed:
                    problem = f"Error while forwarding the request to the leader {leader.url}: {failed}"
                    if failed.was_sent:
                        raise forwarding_failed(problem) from None
                else:
                    is_leader = response.status != 500 or _NO_LEADER not in response.body
                    if is_leader or self._world.now_s() >= deadline_s:
                        return response
            if self._world.now_s() >= deadline_s:
                raise forwarding_failed(problem) if problem else unknown_leader()
            await self._world.sleep(_LOOK_MS)

    def _send(self, request: HttpRequest, leader: Identity) -> Promise[HttpResponse]:
        self.passed_on += 1
        return self._client.ask(
            Origin(leader.scheme, leader.host, leader.port),
            request.method,
            request.target,
            request.body if request.method in ("POST", "PUT") else None,
            headers_to_pass_on(request),
            repeatable=request.method != "DELETE",
        )
