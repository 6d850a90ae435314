"""The login that the options of Java's Kerberos module ask for (`sasl.jaas.config`).

    com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true
      keyTab="/etc/security/kafka.keytab" principal="kafka/node1.example.com@EXAMPLE.COM";
    com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;

A key table is enough for a node, and for a client that has nobody to type a password. Where both are asked for, the key
table counts: tickets are had from it as they are needed. A password is never asked for. Other options (`storeKey`,
`doNotPrompt`, `debug`, …) are about Java's own machinery, and change nothing here; those that would are refused.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.security.sasl.jaas import JaasEntry

SERVICE_SETTING: Final = "sasl.kerberos.service.name"
_REFUSED: Final = ("useFirstPass", "tryFirstPass", "storePass")


class WrongLogin(OttlaError):
    """Options that no login can be made of. Nothing in it is secret."""


class KerberosLogin(NamedTuple):
    service: str
    """The first component of the brokers' principals."""
    principal: str | None
    """None is whose tickets there are."""
    key_table: str | None
    ticket_cache: str | None
    """Where there is no key table; None is the system's."""


def kerberos_login(entry: JaasEntry, service: str | None) -> KerberosLogin:
    """`service` is the setting's. Raises `WrongLogin`."""
    options = entry.options
    for name in _REFUSED:
        if _is_true(options, name):
            raise WrongLogin(f"a login without the option {name}: there is no password to use")
    of_login = options.get("serviceName")
    if of_login is not None and service is not None and of_login != service:
        raise WrongLogin(f"a login whose serviceName is that of {SERVICE_SETTING}, or without one")
    service = service or of_login
    if not service:
        raise WrongLogin(f"a login with serviceName, or {SERVICE_SETTING} given: what the brokers are called")
    principal = options.get("principal")
    if _is_true(options, "useKeyTab"):
        key_table = options.get("keyTab")
        if not key_table or not principal:
            raise WrongLogin("a login with keyTab and principal, since it has useKeyTab")
        return KerberosLogin(service, principal, key_table, None)
    if not _is_true(options, "useTicketCache"):
        raise WrongLogin("a login with useKeyTab=true, keyTab and principal, or with useTicketCache=true")
    return KerberosLogin(service, principal, None, options.get("ticketCache"))


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
