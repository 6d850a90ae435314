"""The keys of tokens, for a registry: those of the node's own listeners, kept fresh in the same way."""

from collections.abc import Callable

from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.runtime.world import World
from ottla.security.sasl.jwt import FindKey


def token_keys(world: World) -> Callable[[str], FindKey]:
    def keys_at(url: str) -> FindKey:
        from ottla.node.security.provider_keys import ProviderKeys, check_url

        check_url(url)
        return ProviderKeys(world, url, Values({}, settings(Scope.BROKER))).find

    return keys_at
