"""A server's end of SCRAM. What it keeps of a password lets nobody log in.

A user that there is not goes the same way as one with a wrong password: it is given a salt, always the same for its
name, and is refused in the end. So nobody finds out who has an account here, by the answers or by the time they take.
The salt is made of the name and a secret that the nodes of a cluster share, and looks like those of Kafka's tools.
"""

from collections.abc import Callable
from hmac import compare_digest
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramCredential, exclusive_or, salt_from
from ottla.security.sasl.scram_messages import (
    TOKEN_EXTENSION,
    ClientFirst,
    ServerFirst,
    encoded,
    parse_client_final,
    parse_client_first,
)

_OTHER_NAME: Final = "Authentication failed: Client requested an authorization id that is different from username"
_WRONG: Final = "Authentication failed: Invalid user credentials"


class FoundCredential(NamedTuple):
    """`owner` is the name that the client gets: for a token, whose it is."""

    credential: ScramCredential
    owner: str
    expires_ms: int | None = None


FindCredential = Callable[[str, bool], FoundCredential | None]
"""The credential of a user; or, if the second argument is true, of the delegation token with this id."""


def made_up_salt(secret: bytes, mechanism: str, name: str, is_token: bool) -> bytes:
    """Of a user that there is not; and of every delegation token, whether there is one with this id or not."""
    of = f"{'token' if is_token else 'user'}\0{name}"
    return salt_from(SCRAM_HASHES[mechanism].signature(secret, of.encode()))


class ScramServer:
    """`nonce` is printable and never used twice. `secret` makes the salts of users that there are not.

    All nodes must have the same secret, at all times: a salt that changes is one of nobody.
    """

    def __init__(self, mechanism: str, find: FindCredential, nonce: str, secret: bytes) -> None:
        self._mechanism = mechanism
        self._scram = SCRAM_HASHES[mechanism]
        self._find = find
        self._nonce = nonce
        self._secret = secret
        self._found: FoundCredential | None = None
        self._credential: ScramCredential | None = None
        self._first: ClientFirst | None = None
        self._challenge: ServerFirst | None = None
        self._is_over = False
        self.is_complete = False
        self.is_token_authenticated = False

    @property
    def principal(self) -> str:
        assert self.is_complete and self._found is not None, "nobody has authenticated"
        return f"User:{self._found.owner}"

    @property
    def expires_ms(self) -> int | None:
        return self._found.expires_ms if self._found is not None else None

    def evaluate(self, response: bytes) -> bytes:
        if self._is_over:
            raise SaslError("the exchange is over")
        self._is_over = True  # unless it goes well
        if self._first is None:
            reply = self._on_first(parse_client_first(response))
            self._is_over = False
            return reply
        reply = self._on_final(response)
        self.is_complete = True
        return reply

    def _on_first(self, first: ClientFirst) -> bytes:
        if first.authorization_id and first.authorization_id != first.user:
            raise AuthenticationFailed(_OTHER_NAME)
        self._first = first
        is_token = first.extensions.get(TOKEN_EXTENSION, "").lower() == "true"
        self._found = self._find(first.user, is_token)
        self.is_token_authenticated = is_token
        made_up = self._made_up(first.user, is_token)
        self._credential = made_up if self._found is None else self._found.credential
        if self._credential.iterations < self._scram.min_iterations:
            raise SaslError(
                f"Iterations {self._credential.iterations} is less than the minimum {self._scram.min_iterations}"
                f" for {self._mechanism}"
            )
        self._challenge = ServerFirst(first.nonce + self._nonce, self._credential.salt, self._credential.iterations)
        return str(self._challenge).encode()

    def _made_up(self, name: str, is_token: bool) -> ScramCredential:
        """Looks like a credential to those who guess names. Its keys open nothing, whatever they are."""
        salt = made_up_salt(self._secret, self._mechanism, name, is_token)
        keys = bytes(self._scram.hash_bytes)
        return ScramCredential(salt, keys, keys, self._scram.min_iterations)

    def _on_final(self, response: bytes) -> bytes:
        first, challenge, credential = self._first, self._challenge, self._credential
        assert first is not None and challenge is not None and credential is not None
        final = parse_client_final(response)
        if not compare_digest(final.nonce, challenge.nonce):
            raise SaslError("Invalid client nonce in the final client message.")
        if final.channel_binding != first.gs2_header.encode():
            raise SaslError("the client's final message is bound to another channel than its first one")
        if len(final.proof) != len(credential.stored_key):
            raise SaslError(_WRONG)
        auth_message = f"{first.bare},{challenge},{final.without_proof}".encode()
        signature = self._scram.signature(credential.stored_key, auth_message)
        stored_key = self._scram.stored_key(exclusive_or(final.proof, signature))
        is_right = compare_digest(stored_key, credential.stored_key)
        server_signature = self._scram.signature(credential.server_key, auth_message)
        if self._found is None or not is_right:
            raise SaslError(_WRONG)
        return f"v={encoded(server_signature)}".encode()
