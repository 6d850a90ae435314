"""TLS. Certificates, keys, whom a broker trusts, and what a client's certificate makes of it.

The rows that clients have too are theirs, with a broker's importance; a listener can take new ones while it runs.
"""

from ottla.config.bounds import OneOf
from ottla.config.setting import ANY, LOW, MEDIUM, PER_BROKER, Class, Flag, Setting, Text
from ottla.config.tables import client_ssl

_STILL_LOW = {
    "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class", "ssl.secure.random.implementation",
}


# Names of Java's classes and algorithms, which nothing here can be told to use.
_JAVAS = {
    "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
}


def _of_a_broker(row: Setting) -> Setting:
    importance = LOW if row.name in _STILL_LOW else MEDIUM
    return row._replace(importance=importance, dynamic=PER_BROKER, acted_on=row.name not in _JAVAS)


SETTINGS = (
    Text("security.inter.broker.protocol", "PLAINTEXT",
         OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), MEDIUM,
         "Security protocol between brokers, when `inter.broker.listener.name` does not name a listener.",
         acted_on=True),
    Text("ssl.client.auth", "none", OneOf(("required", "requested", "none")), MEDIUM,
         "Whether clients must show a certificate, may show one, or are not asked.", PER_BROKER,
         acted_on=True),
    Text("ssl.principal.mapping.rules", "DEFAULT", ANY, LOW,
         "Rules that turn a certificate's distinguished name into a principal's name; the first that matches counts.",
         acted_on=True),
    Class("principal.builder.class",
          "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", ANY, MEDIUM,
          "Class that makes the principal of a connection.", PER_BROKER),
    Flag("ssl.allow.dn.changes", False, ANY, LOW,
         "Whether a new certificate for a listener may name another subject than the one before (KIP-978).",
         acted_on=True),
    Flag("ssl.allow.san.changes", False, ANY, LOW,
         "Whether a new certificate for a listener may leave out alternative names of the one before (KIP-978).",
         acted_on=True),
    *(row for row in client_ssl.SETTINGS if row.name == "security.providers"),
    *(_of_a_broker(row) for row in client_ssl.SETTINGS if row.name.startswith("ssl.")),
)
