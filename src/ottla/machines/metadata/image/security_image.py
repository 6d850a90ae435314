"""Access control entries, SCRAM credentials and delegation tokens, as the metadata log has them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramHash
from ottla.wire.message import Message
from ottla.wire.messages import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

# SCRAM credentials as the metadata keeps them (RFC 5802): a server can check a password by them, nobody find it.

SALT_SECRET: Final = "ottla.scram.salt.secret"
"""The setting that all nodes make salts of which are nobody's; see `docs/decisions/0018-salts-of-nobody.md`."""

MECHANISMS: Final[Mapping[str, ScramHash]] = SCRAM_HASHES
BY_TYPE: Final[Mapping[int, ScramHash]] = {mechanism.type: mechanism for mechanism in MECHANISMS.values()}


def credential_record(
    user: str, mechanism: ScramHash, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """The salted password lets a thief in as well as the password does; only what is derived from it is kept."""
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=mechanism.stored_key(mechanism.client_key(salted_password)),
        server_key=mechanism.server_key(salted_password),
        iterations=iterations,
    )


# Delegation tokens by their owner, and by the HMAC that a client shows (KIP-48).
#
# An HMAC is in no record: nodes make it of a token's id and a secret of their files. The index makes it once for each
# token, when somebody first looks for one, and keeps a digest of it. So the time of a search depends on the digest of
# what was shown, which says nothing of an HMAC that is almost the same; what was found is compared in constant time.


class TokenIndex:
    """Follows the tokens of an image: each of `add` and `remove` is called once for a change."""

    __slots__ = ("_by_owner", "_digests", "_ids", "_secret_key", "_unseen")

    def __init__(self) -> None:
        self._by_owner: dict[str, dict[str, None]] = {}
        self._secret_key: str | None = None
        self._ids: dict[bytes, str] = {}
        """By the digest of the HMAC that `_secret_key` makes."""
        self._digests: dict[str, bytes] = {}
        self._unseen: dict[str, None] = {}
        """Tokens that came since somebody last looked for one."""

    def add(self, token: DelegationTokenRecord) -> None:
        self._by_owner.setdefault(token.owner, {})[token.token_id] = None
        if token.token_id not in self._digests:
            self._unseen[token.token_id] = None

    def remove(self, token: DelegationTokenRecord) -> None:
        of_owner = self._by_owner[token.owner]
        del of_owner[token.token_id]
        if not of_owner:
            del self._by_owner[token.owner]
        self._unseen.pop(token.token_id, None)
        digest = self._digests.pop(token.token_id, None)
        if digest is not None:
            del self._ids[digest]

    def of_owner(self, owner: str) -> Collection[str]:
        """The ids of an owner's tokens, oldest first."""
        return self._by_owner.get(owner, {}).keys()

    def find(self, given: bytes, secret_key: str) -> str | None:
        """The id of the token whose HMAC this is."""
        from ottla.security.sasl.token_hmac import hmac_digest, is_hmac_of, token_hmac  # Most nodes have no tokens.

        if secret_key != self._secret_key:
            self._secret_key = secret_key
            self._unseen = dict.fromkeys([*self._digests, *self._unseen])
            self._ids.clear()
            self._digests.clear()
        for token_id in self._unseen:
            digest = hmac_digest(token_hmac(secret_key, token_id))
            self._ids[digest] = token_id
            self._digests[token_id] = digest
        self._unseen.clear()
        found = self._ids.get(hmac_digest(given))
        return found if found is not None and is_hmac_of(given, secret_key, found) else None

    def copy(self) -> "TokenIndex":
        copied = TokenIndex()
        copied._by_owner = {owner: dict(ids) for owner, ids in self._by_owner.items()}
        copied._secret_key = self._secret_key
        copied._ids, copied._digests, copied._unseen = dict(self._ids), dict(self._digests), dict(self._unseen)
        return copied


# What the cluster knows of its users: access control entries, SCRAM credentials and delegation tokens.
#
# The records are kept as they came, so that a snapshot writes them again and nothing that another node put into the log
# is lost by passing through this one.


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
