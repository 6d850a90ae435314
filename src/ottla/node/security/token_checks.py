"""What tokens of OAUTHBEARER a listener believes, from its settings (KIP-255, KIP-768)."""

import logging
import os
from functools import partial
from importlib.util import find_spec
from typing import Final

from ottla.base.installing import install_command
from ottla.config.parse import ConfigError, Problem, Values
from ottla.node.security.provider_keys import URL, ProviderKeys, check_url
from ottla.runtime.world import World
from ottla.security.sasl.allowed_urls import AllowedResources
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.jwt import Expected, Token, check_signed, check_unsecured
from ottla.security.sasl.oauthbearer_server import OAuthBearerServer

_log = logging.getLogger(__name__)
_HANDLER: Final = "sasl.server.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_SIGNED: Final = _PACKAGE + "OAuthBearerValidatorCallbackHandler"
_UNSECURED: Final = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_VALIDATORS: Final = (_PACKAGE + "DefaultJwtValidator", _PACKAGE + "BrokerJwtValidator")


class TokenChecks:
    """Makes the server's end of OAUTHBEARER for listeners. Keys of one URL are kept once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._keys: dict[str, ProviderKeys] = {}

    def make(self, values: Values, listener: str, login: JaasEntry | None) -> "partial[OAuthBearerServer]":
        """`values` are those of the listener and mechanism. Raises `ConfigError`.

        Tokens are checked by the provider's keys where a URL of keys is given, even if no class is named; in Kafka
        the class has to be named for that. Without either, tokens are believed that nobody has signed, as in Kafka.
        """
        handler, url = values[_HANDLER], values[URL]
        if handler not in (None, _SIGNED, _UNSECURED):
            raise _wrong(_HANDLER, str(handler), f"{_SIGNED} or {_UNSECURED}: no class of Java's can be loaded")
        if handler == _SIGNED and not url:
            raise ConfigError((Problem(URL, None, "given, so that signatures of tokens can be checked"),))
        if url and handler != _UNSECURED:
            return partial(OAuthBearerServer, self._signed(values, str(url)), partial(_note, listener))
        if login is None:
            raise ConfigError((Problem(URL, None, f"given, for the tokens of listener {listener}"),))
        _log.warning("listener %s accepts unsigned tokens: for development only", listener)
        return partial(OAuthBearerServer, self._unsecured(login), partial(_note, listener))

    def _signed(self, values: Values, url: str) -> "partial[Token]":
        if values[_VALIDATOR] not in _VALIDATORS:
            raise _wrong(_VALIDATOR, str(values[_VALIDATOR]), "left out: no class of Java's can be loaded")
        if find_spec("cryptography") is None:
            raise _wrong(URL, url, f"left out, or cryptography installed ({install_command('security')})")
        check_url(url)
        AllowedResources.of(os.environ).check_url(URL, url)
        keys = self._keys.get(url)
        if keys is None:
            keys = self._keys[url] = ProviderKeys(self._world, url, values)
        expected = Expected(
            issuer=str(values["sasl.oauthbearer.expected.issuer"] or "") or None,
            audience=values.list("sasl.oauthbearer.expected.audience"),
            clock_skew_ms=values.integer("sasl.oauthbearer.clock.skew.seconds") * 1000,
            name_claim=values.text("sasl.oauthbearer.sub.claim.name"),
            scope_claim=values.text("sasl.oauthbearer.scope.claim.name"),
        )
        return partial(_check_signed, keys, expected, self._world)

    def _unsecured(self, login: JaasEntry) -> "partial[Token]":
        options = login.options
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
        if not skew.isdecimal():
            raise _wrong(
                "sasl.jaas.config", "[hidden]", "a login whose unsecuredValidatorAllowableClockSkewMs is a number"
            )
        expected = Expected(
            scope=tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
            clock_skew_ms=int(skew),
            name_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
            scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        )
        return partial(_check_unsecured, expected, self._world)


def _check_signed(keys: ProviderKeys, expected: Expected, world: World, text: str) -> Token:
    return check_signed(text, keys.find, expected, world.clock.now_ms())


def _check_unsecured(expected: Expected, world: World, text: str) -> Token:
    return check_unsecured(text, expected, world.clock.now_ms())


def _note(listener: str, reason: str) -> None:
    _log.info("%s: rejected a token: %s", listener, reason.encode("unicode_escape").decode()[:300])


def _wrong(key: str, text: str, bound: str) -> ConfigError:
    return ConfigError((Problem(key, text, bound),))
