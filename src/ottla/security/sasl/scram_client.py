"""A client's end of SCRAM: it proves that it knows the password, and has the server prove that it knows it, too."""

from hmac import compare_digest

from ottla.security.sasl.mechanism import SaslError
from ottla.security.sasl.scram_keys import SCRAM_HASHES, exclusive_or
from ottla.security.sasl.scram_messages import (
    GS2_HEADER,
    TOKEN_EXTENSION,
    encoded,
    escaped,
    parse_server_final,
    parse_server_first,
)


class ScramClient:
    """`nonce` is printable, without a comma, and never used twice. For a token, `user` is its id and `password` its
    HMAC in base64.

    What a server asks for is bounded on both sides: with few iterations a false server could guess the password from
    the proof, and with very many it would only keep us busy.
    """

    def __init__(self, mechanism: str, user: str, password: str, nonce: str, *, is_token: bool = False) -> None:
        self.name = mechanism
        self.is_complete = False
        self._scram = SCRAM_HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        self._bare = f"n={escaped(user)},r={nonce}" + (f",{TOKEN_EXTENSION}=true" if is_token else "")
        self._step = self._first
        self._expected = b""

    def respond(self, challenge: bytes | None) -> bytes | None:
        return self._step(challenge)

    def _first(self, challenge: bytes | None) -> bytes | None:
        if challenge:
            raise SaslError("Expected empty challenge")
        self._step = self._final
        return (GS2_HEADER + self._bare).encode()

    def _final(self, challenge: bytes | None) -> bytes | None:
        scram, message = self._scram, parse_server_first(challenge or b"")
        if not message.nonce.startswith(self._nonce) or message.nonce == self._nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce")
        if not scram.min_iterations <= message.iterations <= scram.max_iterations:
            bounds = f"{scram.min_iterations} to {scram.max_iterations}"
            raise SaslError(f"Requested iterations {message.iterations} are not among the {bounds} of {self.name}")
        salted = scram.salted_password(self._password, message.salt, message.iterations)
        without_proof = f"c={encoded(GS2_HEADER.encode())},r={message.nonce}"
        auth_message = f"{self._bare},{(challenge or b'').decode()},{without_proof}".encode()
        client_key = scram.client_key(salted)
        signature = scram.signature(scram.stored_key(client_key), auth_message)
        self._expected = scram.signature(scram.server_key(salted), auth_message)
        self._step = self._end
        return f"{without_proof},p={encoded(exclusive_or(client_key, signature))}".encode()

    def _end(self, challenge: bytes | None) -> bytes | None:
        message = parse_server_final(challenge or b"")
        if message.error is not None:
            raise SaslError(f"Sasl authentication using {self.name} failed with error: {message.error}")
        if not compare_digest(message.signature, self._expected):
            raise SaslError("Invalid server signature in server final message")
        self.is_complete = True
        self._step = self._over
        return None

    def _over(self, challenge: bytes | None) -> bytes | None:
        raise SaslError("the exchange is over")
