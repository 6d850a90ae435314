"""Delegation tokens by their owner, and by the HMAC that a client shows (KIP-48).

An HMAC is in no record: nodes make it of a token's id and a secret of their files. The index makes it once for each
token, when somebody first looks for one, and keeps a digest of it. So the time of a search depends on the digest of
what was shown, which says nothing of an HMAC that is almost the same; what was found is compared in constant time.
"""

from collections.abc import Collection

from ottla.wire.messages import DelegationTokenRecord


class TokenIndex:
    """Follows the tokens of an image: each of `add` and `remove` is told once for a change."""

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
