"""What clients are checked against: the metadata as it is committed on this node."""

from functools import partial

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramCredential
from ottla.security.sasl.scram_server import FindCredential, FoundCredential


class Credentials:
    """Before the metadata is loaded, nobody has any."""

    def __init__(self) -> None:
        self.image: MetadataImage | None = None

    def of_scram(self, mechanism: str) -> FindCredential:
        return partial(self._find, mechanism)

    def _find(self, mechanism: str, name: str, is_token: bool) -> FoundCredential | None:
        if self.image is None or is_token:
            return None
        record = self.image.security.scram_credentials.get((SCRAM_HASHES[mechanism].type, name))
        if record is None:
            return None
        credential = ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )
        return FoundCredential(credential, name)
