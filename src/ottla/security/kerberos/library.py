"""The system's Kerberos (MIT's or Heimdal's), through the library `gssapi`: `pip install 'ottla[gssapi]'`.

It reads its own configuration: `/etc/krb5.conf`, or what `KRB5_CONFIG` names. What a server does here reads its key
table and asks nobody. What a client does may wait for the network (`initiate`): not for a loop.

Tickets that a key table gives are kept in memory, one set for all clients of a process that log in with it. The library
renews them, when one is asked for late in their life; so nothing here has timers, and there is no `kinit`.
"""

from typing import Any, Final

from ottla.base.errors import OttlaError
from ottla.base.installing import install_command
from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.gssapi_client import GssapiClient
from ottla.security.kerberos.kerberos_login import KerberosLogin

NEEDS: Final = "(it needs the system's Kerberos: libkrb5, and libkrb5-dev to be built)"
_KDC_UNREACHABLE: Final = -1765328228 & 0xFFFFFFFF
"""KRB5_KDC_UNREACH: no KDC of the realm answers."""


class NoKerberos(OttlaError):
    """The extra is not installed, or does not find the system's library."""


def library() -> Any:
    """Raises `NoKerberos`."""
    try:
        import gssapi
    except (ImportError, OSError) as problem:
        raise NoKerberos(f"{install_command('gssapi')} {NEEDS}; now: {problem}") from None
    return gssapi


class Context:
    """A `GssContext`. `made` is the library's."""

    def __init__(self, made: Any, error: type[Exception]) -> None:
        made.__DEFER_STEP_ERRORS__ = False  # It would send a token that tells of the error, and raise it a step later.
        self._made = made
        self._error = error

    @property
    def is_complete(self) -> bool:
        return bool(self._made.complete)

    @property
    def client(self) -> str:
        try:
            return str(self._made.initiator_name)
        except (self._error, UnicodeError) as problem:
            raise failed(problem) from None

    def step(self, token: bytes | None, /) -> bytes | None:
        try:
            made: bytes | None = self._made.step(token)
        except self._error as problem:
            raise failed(problem) from None
        return made

    def wrap(self, message: bytes, /) -> bytes:
        try:
            return bytes(self._made.wrap(message, False).message)
        except self._error as problem:
            raise failed(problem) from None

    def unwrap(self, token: bytes, /) -> bytes:
        try:
            return bytes(self._made.unwrap(token).message)
        except self._error as problem:
            raise failed(problem) from None


class Acceptor:
    """What a listener checks clients with: the key of its principal. Raises `NoKerberos`, `GssFailed`."""

    def __init__(self, principal: str, key_table: str) -> None:
        self._gssapi = gssapi = library()
        try:
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            self._credentials = gssapi.Credentials(
                name=name, usage="accept", mechs=[gssapi.MechType.kerberos], store={"keytab": key_table}
            )
        except gssapi.exceptions.GSSError as problem:
            raise failed(problem) from None

    def new_context(self) -> Context:
        gssapi = self._gssapi
        return Context(
            gssapi.SecurityContext(creds=self._credentials, usage="accept"),
            gssapi.exceptions.GSSError,
        )


def initiate(login: KerberosLogin, host: str) -> GssapiClient:
    """The client's end of an exchange with the service on that host. May wait. Raises `GssFailed`.

    What the host is called in its principal is up to `dns_canonicalize_hostname` and `rdns` of the configuration.
    """
    gssapi = library()
    kerberos = gssapi.MechType.kerberos
    try:
        own = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal) if login.principal else None
        credentials = gssapi.Credentials(name=own, usage="initiate", mechs=[kerberos], store=_store(login))
        target = gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service)
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
        made = gssapi.SecurityContext(name=target, creds=credentials, mech=kerberos, flags=flags, usage="initiate")
    except gssapi.exceptions.GSSError as problem:
        raise failed(problem) from None
    context = Context(made, gssapi.exceptions.GSSError)
    return GssapiClient(context, context.step(None) or b"")


def default_realm() -> str:
    """The realm of a name that has none; empty if the configuration does not tell."""
    gssapi = library()
    try:
        name = gssapi.Name("nobody", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).rpartition("@")[2]


def _store(login: KerberosLogin) -> dict[str, str] | None:
    if login.key_table is not None:
        return {"client_keytab": login.key_table, "ccache": f"MEMORY:ottla {login.principal} {login.key_table}"}
    return None if login.ticket_cache is None else {"ccache": login.ticket_cache}


def failed(problem: Any) -> GssFailed:
    """What the library raised, in the words of Kerberos."""
    minor = getattr(problem, "min_code", 0)
    # The major code of what Kerberos itself says is always the same: "Unspecified GSS failure".
    text = "; ".join(problem.get_all_statuses(minor, False)) if minor else str(problem)
    return GssFailed(text, may_pass=minor & 0xFFFFFFFF == _KDC_UNREACHABLE)
