"""PLAIN (RFC 4616): an authorization id, a name and a password, with a NUL between them. Only for encrypted lines."""

from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Final

from ottla.security.sasl.mechanism import PLAIN, AuthenticationFailed, LastingLogin, SaslError

_PARTS: Final = 3
_OTHER_NAME: Final = "Authentication failed: Client requested an authorization id that is different from username"
_WRONG: Final = "Authentication failed: Invalid username or password"

CheckPassword = Callable[[str, str], bool]
"""Whether a user has this password; takes as long for a user that there is not."""


class PlainClient:
    name: Final = PLAIN

    def __init__(self, user: str, password: str) -> None:
        self.is_complete = False
        self._user = user
        self._password = password

    def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return f"\0{self._user}\0{self._password}".encode()
        if challenge:
            raise SaslError("the server sent a challenge, and PLAIN has none")
        self.is_complete = True
        return None


class PlainServer(LastingLogin):
    def __init__(self, check: CheckPassword) -> None:
        super().__init__()
        self._check = check

    def evaluate(self, response: bytes) -> bytes:
        if self._user is not None:
            raise SaslError("the exchange is over")
        try:
            parts = response.decode().split("\0")
        except UnicodeDecodeError as problem:
            raise SaslError("Invalid SASL/PLAIN response: it is not UTF-8") from problem
        if len(parts) != _PARTS:
            raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), _PARTS + 1)}")
        authorization_id, user, password = parts
        if not user:
            raise SaslError("Authentication failed: username not specified")
        if not password:
            raise SaslError("Authentication failed: password not specified")
        if not self._check(user, password):
            raise AuthenticationFailed(_WRONG)
        if authorization_id and authorization_id != user:
            raise AuthenticationFailed(_OTHER_NAME)
        self._user = user
        return b""


class Passwords:
    """The users that a listener's JAAS names (`user_alice="secret"`). A `CheckPassword`."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {user: password.encode() for user, password in passwords.items()}

    def __call__(self, user: str, password: str) -> bool:
        expected = self._passwords.get(user)
        given = password.encode()
        # A user that there is not is compared with its own password, and refused all the same.
        is_same = compare_digest(given if expected is None else expected, given)
        return is_same and bool(expected)
