"""A GSS-API context (RFC 2743) as the two ends of the mechanism need it."""

from typing import Protocol

from ottla.security.sasl.mechanism import SaslError


class GssFailed(SaslError):
    """Kerberos says no. `may_pass` if it could not be asked: trying again may help then."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class GssContext(Protocol):
    """All methods raise `GssFailed`."""

    @property
    def is_complete(self) -> bool:
        """Whether each side has proved to the other who it is."""

    @property
    def client(self) -> str:
        """The client's principal, with its realm. Valid once the context is complete."""

    def step(self, token: bytes | None, /) -> bytes | None:
        """Takes the other side's token, and returns our next one; None if there is nothing to send."""

    def wrap(self, message: bytes, /) -> bytes:
        """Signs a message. It stays readable."""

    def unwrap(self, token: bytes, /) -> bytes:
        """The message, if the other side has signed it."""
