"""What a delegation token is proved with (KIP-48): an HMAC of its id, by a secret that the cluster's nodes share.

It is stored nowhere: each node makes it of the token's id. In base64 it is the password of the token, in SCRAM.
"""

import hmac
from base64 import b64encode
from hashlib import sha256

_HASH = "sha512"


def token_hmac(secret_key: str, token_id: str) -> bytes:
    return hmac.digest(secret_key.encode(), token_id.encode(), _HASH)


def token_password(secret_key: str, token_id: str) -> str:
    return b64encode(token_hmac(secret_key, token_id)).decode()


def hmac_digest(shown: bytes) -> bytes:
    """What an HMAC may be looked up by: how it compares to others says nothing of the HMAC."""
    return sha256(shown).digest()


def is_hmac_of(given: bytes, secret_key: str, token_id: str) -> bool:
    """Takes the same time whether it is or not."""
    return hmac.compare_digest(given, token_hmac(secret_key, token_id))
