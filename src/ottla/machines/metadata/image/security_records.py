"""What the cluster knows of its users: access control entries, SCRAM credentials and delegation tokens.

The records are kept as they came, so that a snapshot writes them again and nothing that another node put into the
log is lost by passing through this one.
"""

from collections.abc import Iterator

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.machines.metadata.image.token_index import TokenIndex
from ottla.wire.message import Message
from ottla.wire.messages import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class SecurityImage:
    __slots__ = ("acls", "scram_credentials", "token_index", "tokens")

    def __init__(self) -> None:
        self.acls: dict[Uuid, AccessControlEntryRecord] = {}
        self.scram_credentials: dict[tuple[int, str], UserScramCredentialRecord] = {}
        """By mechanism and user."""
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.token_index = TokenIndex()

    def replay_acl(self, record: AccessControlEntryRecord, delta: MetadataDelta) -> None:
        self.acls[record.id] = record
        delta.acls.add(record.id)

    def replay_remove_acl(self, record: RemoveAccessControlEntryRecord, delta: MetadataDelta) -> None:
        if self.acls.pop(record.id, None) is None:
            raise CorruptMetadataError(f"the ACL with id {record.id.hex()} is removed, which does not exist")
        delta.acls.add(record.id)

    def replay_scram(self, record: UserScramCredentialRecord, delta: MetadataDelta) -> None:
        self.scram_credentials[record.mechanism, record.name] = record
        delta.scram_users.add(record.name)

    def replay_remove_scram(self, record: RemoveUserScramCredentialRecord, delta: MetadataDelta) -> None:
        self.scram_credentials.pop((record.mechanism, record.name), None)
        delta.scram_users.add(record.name)

    def replay_token(self, record: DelegationTokenRecord, delta: MetadataDelta) -> None:
        before = self.tokens.get(record.token_id)
        if before is not None and before.owner != record.owner:
            self.token_index.remove(before)
        self.tokens[record.token_id] = record
        self.token_index.add(record)
        delta.tokens.add(record.token_id)

    def replay_remove_token(self, record: RemoveDelegationTokenRecord, delta: MetadataDelta) -> None:
        token = self.tokens.pop(record.token_id, None)
        if token is not None:
            self.token_index.remove(token)
        delta.tokens.add(record.token_id)

    def records(self) -> Iterator[Message]:
        yield from self.acls.values()
        yield from self.scram_credentials.values()
        yield from self.tokens.values()

    def copy(self) -> "SecurityImage":
        copied = SecurityImage()
        copied.acls = dict(self.acls)
        copied.scram_credentials = dict(self.scram_credentials)
        copied.tokens = dict(self.tokens)
        copied.token_index = self.token_index.copy()
        return copied
