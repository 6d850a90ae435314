"""Telling a broker who we are: the step between connecting and the first request.

It has a place of its own in the life of a connection. Without security there is nothing to tell.
"""

from typing import Protocol

from ottla.client.promise import Promise


class Authentication(Protocol):
    def begin(self) -> Promise[None]:
        """Done when the broker knows who we are; rejected with the reason that it does not believe us."""
        ...


class NoAuthentication:
    def begin(self) -> Promise[None]:
        return Promise.resolved(None)
