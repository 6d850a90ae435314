"""What clients are checked against: the metadata as it is committed on this node."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramCredential
from ottla.security.sasl.scram_server import FindCredential, FoundCredential
from ottla.security.sasl.token_hmac import token_password

_SALT_BYTES: Final = 20
_MOST_KEPT: Final = 10_000


class Credentials:
    """Before the metadata is loaded, nobody has any. `secret_key` is `delegation.token.secret.key`."""

    def __init__(self, secret_key: str | None, now_ms: Callable[[], int], randbytes: Callable[[int], bytes]) -> None:
        self.image: MetadataImage | None = None
        self._secret_key = secret_key
        self._now_ms = now_ms
        self._randbytes = randbytes
        self._of_tokens: dict[tuple[str, str], ScramCredential] = {}

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
            credential = scram.credential(password, self._randbytes(_SALT_BYTES), scram.min_iterations)
            if len(self._of_tokens) >= _MOST_KEPT:
                self._of_tokens.clear()
            self._of_tokens[mechanism, token_id] = credential
        return FoundCredential(credential, token.owner.partition(":")[2], token.expiration_timestamp)
