"""The login that a client's settings ask for. All that is wrong with them is raised when the client is made."""

from typing import TYPE_CHECKING, Protocol

from ottla.client.promise import Promise
from ottla.client.protection import Protection
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.config.parse import ConfigError, Problem
from ottla.config.values import HIDDEN

if TYPE_CHECKING:
    from ottla.wire.exchange.login import ClientMechanism


class Login(Protocol):
    """What a client has to show."""

    def mechanism(self, host: str) -> "Promise[ClientMechanism]":
        """Makes one for one login at a broker on that host. Rejected with a `KafkaError`."""
        ...

    def close(self) -> None:
        """The client is closed: nothing is renewed any more."""
        ...


def login_for(world: ClientWorld, settings: ClientSettings) -> Login | None:
    """None without SASL. Raises `ConfigError`."""
    if not Protection.of(settings).has_sasl:
        return None
    from ottla.security.sasl.jaas import WrongJaas, parse_login
    from ottla.security.sasl.mechanism import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

    mechanism = settings.text("sasl.mechanism").upper()
    jaas = settings.secret("sasl.jaas.config")
    if mechanism not in (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI):
        known = f"{PLAIN}, {SCRAM_SHA_256}, {SCRAM_SHA_512}, {OAUTHBEARER} or {GSSAPI}"
        raise ConfigError((Problem("sasl.mechanism", mechanism, known),))
    try:
        entry = None if jaas is None else parse_login(jaas.secret)
    except WrongJaas as problem:
        raise ConfigError((Problem("sasl.jaas.config", HIDDEN, f"a login in JAAS's form: {problem}"),)) from None
    if entry is None:
        module = "scram.Scram" if mechanism.startswith("SCRAM") else "plain.Plain"
        wanted = (
            f"given: a login, as in `org.apache.kafka.common.security.{module}LoginModule required "
            'username="alice" password="secret";`'
        )
        if "sasl.mechanism" not in settings.given:
            wanted += f" (and sasl.mechanism, unless {GSSAPI} is meant)"
        raise ConfigError((Problem("sasl.jaas.config", None, wanted),))
    if mechanism == OAUTHBEARER:
        from ottla.client.login.oauth import oauth_login

        return oauth_login(world, settings, entry)
    if mechanism == GSSAPI:
        from ottla.client.login.kerberos import ticket_login

        return ticket_login(world, settings, entry)
    from ottla.client.login.passwords import PasswordLogin

    return PasswordLogin(world.entropy, mechanism, entry)
