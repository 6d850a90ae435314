"""SASL. Mechanisms a broker offers and uses, and delegation tokens.

The rows that clients have too are theirs; a broker gives some more weight, and does not bound the refreshing of logins.
"""

from ottla.config.bounds import Items, at_least
from ottla.config.setting import (
    ANY, HIGH, LOW, MEDIUM, PER_BROKER, READ_ONLY, Class, Int, List, Long, Secret, Setting, Text,
)
from ottla.config.tables import client_sasl

_NOT_OF_A_BROKER = {"sasl.mechanism", "sasl.oauthbearer.header.urlencode"}
_ACTED_ON = {
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    *(row.name for row in client_sasl.SETTINGS if row.name.startswith("sasl.oauthbearer.")),
}


def _of_a_broker(row: Setting) -> Setting:
    refresh = row.name.startswith("sasl.login.refresh.")
    kerberos = row.name.startswith("sasl.kerberos.")
    return row._replace(
        importance=MEDIUM if refresh or kerberos else row.importance,
        bound=None if refresh else row.bound,
        acted_on=row.name in _ACTED_ON,
        dynamic=PER_BROKER if refresh or kerberos or row.name == "sasl.jaas.config" else READ_ONLY,
    )


SETTINGS = (
    List("sasl.enabled.mechanisms", ("GSSAPI",), Items(), MEDIUM,
         "Mechanisms with which clients may prove who they are.", PER_BROKER, acted_on=True),
    Text("sasl.mechanism.inter.broker.protocol", "GSSAPI", ANY, MEDIUM,
         "Mechanism between brokers.", PER_BROKER, acted_on=True),
    Text("sasl.mechanism.controller.protocol", "GSSAPI", ANY, HIGH,
         "Mechanism towards controllers.", acted_on=True),
    Class("sasl.server.callback.handler.class", None, ANY, MEDIUM,
          "Class that answers the server side of a mechanism; given for a listener and mechanism.", acted_on=True),
    Int("sasl.server.max.receive.size", 524_288, ANY, MEDIUM,
        "Largest message that is read before a client has authenticated.", acted_on=True),
    List("sasl.kerberos.principal.to.local.rules", ("DEFAULT",), Items(), MEDIUM,
         "Rules that turn a Kerberos principal into a short name; the first that matches counts.", PER_BROKER,
         acted_on=True),
    Long("connections.max.reauth.ms", 0, ANY, MEDIUM,
         "Longest time before a client must authenticate again (KIP-368); 0 is never.", acted_on=True),

    # Delegation tokens
    Secret("delegation.token.secret.key", MEDIUM,
           "Key that signs delegation tokens, the same on all nodes; without it there are none.", acted_on=True),
    Long("delegation.token.expiry.time.ms", 86_400_000, at_least(1), MEDIUM,
         "Life of a token until it must be renewed.", acted_on=True),
    Long("delegation.token.max.lifetime.ms", 604_800_000, at_least(1), MEDIUM,
         "Life of a token after which it cannot be renewed any more.", acted_on=True),
    Long("delegation.token.expiry.check.interval.ms", 3_600_000, at_least(1), LOW,
         "Time between two looks for expired tokens.", acted_on=True),

    *(_of_a_broker(row) for row in client_sasl.SETTINGS if row.name not in _NOT_OF_A_BROKER),
)
