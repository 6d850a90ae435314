"""A name and a password: PLAIN, SCRAM, and delegation tokens (KIP-48), which are shown by SCRAM."""

from binascii import b2a_base64
from typing import Final

from ottla.base.ports import Entropy
from ottla.client.promise import Promise
from ottla.config.parse import ConfigError, Problem
from ottla.config.values import HIDDEN
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.mechanism import PLAIN
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram_client import ScramClient
from ottla.wire.exchange.login import ClientMechanism

_NONCE_BYTES: Final = 18


class PasswordLogin:
    """The same for every connection, but for the nonce."""

    def __init__(self, entropy: Entropy, mechanism: str, entry: JaasEntry) -> None:
        """Raises `ConfigError` where a name or a password is missing."""
        self._entropy = entropy
        self._mechanism = mechanism
        self._user = _required(entry, "username")
        self._password = _required(entry, "password")
        self._is_token = entry.options.get("tokenauth", "").lower() == "true"

    def mechanism(self, host: str) -> Promise[ClientMechanism]:
        made: ClientMechanism
        if self._mechanism == PLAIN:
            made = PlainClient(self._user, self._password)
        else:
            nonce = b2a_base64(self._entropy.randbytes(_NONCE_BYTES), newline=False).decode()
            made = ScramClient(self._mechanism, self._user, self._password, nonce, is_token=self._is_token)
        return Promise.resolved(made)

    def close(self) -> None:
        pass


def _required(entry: JaasEntry, option: str) -> str:
    value = entry.options.get(option)
    if not value:
        raise ConfigError((Problem("sasl.jaas.config", HIDDEN, f"a login with the option {option}"),))
    return value
