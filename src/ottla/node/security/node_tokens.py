"""Tokens that a node shows to other nodes (OAUTHBEARER): fetched and renewed as a client of ours does it.

Where they come from is said by the settings of the listener and mechanism, as for a client: `sasl.oauthbearer.*`,
`sasl.login.*` and the options of the login.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ottla.client.errors import KafkaError
from ottla.client.login.oauth import oauth_login
from ottla.client.login.token_login import TokenLogin
from ottla.client.promise import Promise
from ottla.client.settings import java_class_problem
from ottla.client.world import ClientWorld
from ottla.config.listener_values import listener_values
from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.scopes import Scope, settings
from ottla.runtime.world import World
from ottla.security.sasl.jaas import JaasEntry
from ottla.security.sasl.mechanism import OAUTHBEARER
from ottla.wire.exchange.client_connection import NewLogin
from ottla.wire.exchange.login import ClientMechanism
from ottla.wire.exchange.open_request import Refused

_log = logging.getLogger(__name__)
T = TypeVar("T")


def token_login(world: World, values: Values, listener: str, entry: JaasEntry) -> NewLogin:
    """Raises `ConfigError`."""
    of_clients = settings(Scope.ADMIN)
    given = {
        key: value
        for key, value in listener_values(values, listener, OAUTHBEARER).given.items()
        if key in of_clients and key.startswith("sasl.")
    }
    for key, value in given.items():
        if problem := java_class_problem(key, value):
            raise ConfigError((Problem(key, str(value), problem),))
    login = oauth_login(_client_world(world), Values(given, of_clients), entry)
    return partial(_by_token, login)


def _by_token(
    login: TokenLogin, host: str, then: Callable[[ClientMechanism], None], failed: Callable[[Exception], None]
) -> None:
    def done_with(done: Promise[Any]) -> None:
        if isinstance(done.error, KafkaError):
            failed(Refused(done.error.code, str(done.error)))
        else:
            then(done.value())

    login.mechanism(host).on_done(done_with)


def _client_world(world: World) -> ClientWorld:
    def aside(work: Callable[[], T]) -> Promise[T]:
        outcome: Promise[T] = Promise()
        world.workers.run(work, outcome.resolve, outcome.reject, key=aside)
        return outcome

    def report(problem: Exception) -> None:
        _log.error("renewing the token of this node failed", exc_info=problem)

    return ClientWorld(world.clock, world.timers, world.entropy, world.network, report, aside)
