"""A GSS-API context that follows a script: it makes the tokens that it is told to."""

from collections.abc import Sequence

from ottla.security.kerberos.gss_context import GssFailed

SIGNATURE = b"signed:"


class ScriptedContext:
    """`steps` are pairs: the token that is expected, and what is answered. It is complete after the last of them."""

    def __init__(self, steps: Sequence[tuple[bytes | None, bytes | None]], client: str = "alice@EAST") -> None:
        self._steps = list(steps)
        self.client = client

    @property
    def is_complete(self) -> bool:
        return not self._steps

    def step(self, token: bytes | None, /) -> bytes | None:
        expected, answer = self._steps.pop(0)
        if token != expected:
            raise GssFailed(f"a token that Kerberos does not accept: {token!r}")
        return answer

    def wrap(self, message: bytes, /) -> bytes:
        return SIGNATURE + message

    def unwrap(self, token: bytes, /) -> bytes:
        if not token.startswith(SIGNATURE):
            raise GssFailed("nobody has signed this")
        return token.removeprefix(SIGNATURE)
