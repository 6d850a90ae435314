"""What clients are checked against: the metadata as it is committed on this node."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramCredential
from ottla.security.sasl.scram_server import FindCredential, FoundCredential, made_up_salt
from ottla.security.sasl.token_hmac import token_password

_MOST_KEPT: Final = 10_000


class Credentials:
    """Before the metadata is loaded, nobody has any. `secret_key` is `delegation.token.secret.key`.

    `salt_secret` makes the salts of all who have none of their own in the metadata: of users that there are not, and of
    tokens. Nodes that have the same one give the same salts. A node that knows none begins with one of its own.
    """

    def __init__(self, secret_key: str | None, now_ms: Callable[[], int], salt_secret: bytes) -> None:
        self.image: MetadataImage | None = None
        self._secret_key = secret_key
        self._now_ms = now_ms
        self._salt_secret = salt_secret
        self._of_tokens: dict[tuple[str, str], ScramCredential] = {}

    @property
    def salt_secret(self) -> bytes:
        return self._salt_secret

    @salt_secret.setter
    def salt_secret(self, secret: bytes) -> None:
        self._salt_secret = secret
        self._of_tokens.clear()

    def of_scram(self, mechanism: str) -> FindCredential:
        return partial(self._find, mechanism)

    def _find(self, mechanism: str, name: str, is_token: bool) -> FoundCredential | None:
        if self.image is None:
            return None
        if is_token:
            return self._find_token(self.image, mechanism, name)
        record = self.image.security.scram_credentials.get((SCRAM_HASHES[mechanism].type, name))
        if record is None:
            return None
        credential = ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )
        return FoundCredential(credential, name)

    def _find_token(self, image: MetadataImage, mechanism: str, token_id: str) -> FoundCredential | None:
        """A token's password is made of the node's secret; one whose time is over is as good as gone."""
        token = image.security.tokens.get(token_id)
        if token is None or self._secret_key is None or token.expiration_timestamp < self._now_ms():
            return None
        credential = self._of_tokens.get((mechanism, token_id))
        if credential is None:
            scram = SCRAM_HASHES[mechanism]
            password = token_password(self._secret_key, token_id)
            salt = made_up_salt(self._salt_secret, mechanism, token_id, is_token=True)
            credential = scram.credential(password, salt, scram.min_iterations)
            if len(self._of_tokens) >= _MOST_KEPT:
                self._of_tokens.clear()
            self._of_tokens[mechanism, token_id] = credential
        return FoundCredential(credential, token.owner.partition(":")[2], token.expiration_timestamp)
