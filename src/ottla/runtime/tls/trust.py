"""Who a listener is and whom it believes: its certificates, its authorities, and what it makes of a client's name.

All of it may change while the node runs. A connection keeps what it was made with; the next one has the new.

Clients of TLS 1.2 may resume a session, and their certificate is not looked at then. OpenSSL has them do so for two
hours, and Python has no say in that; but sessions are of one context. So a listener that asks for certificates makes
itself a new context every minute in which somebody comes.
"""

import ssl
from collections.abc import Mapping
from typing import Final

from ottla.config.parse import ConfigError, Problem
from ottla.config.values import Value
from ottla.security.api_access import ANONYMOUS
from ottla.security.tls.contexts import allowed_suites, client_context, server_context
from ottla.security.tls.distinguished_names import alternative_names_of, subject_of, valid_until
from ottla.security.tls.principal_mapping import PrincipalMapping
from ottla.security.tls.stores import Material, certificates_of, read_material

_MOST_ROUNDS: Final = 10
_MOST_RESUMED_S: Final = 60.0


class ListenerTrust:
    """Of one listener. `values` are its settings. Making one raises `ConfigError`.

    `is_served` is whether this node listens there; otherwise it only connects to it. `is_dialled`: nodes connect to
    each other there, so the certificate that is shown has to be one that is trusted.
    """

    def __init__(self, values: Mapping[str, Value], *, is_served: bool = True, is_dialled: bool = False) -> None:
        self.is_served = is_served
        self._is_dialled = is_dialled
        self.values: Mapping[str, Value]
        self.material: Material
        self.server: ssl.SSLContext | None
        self.client: ssl.SSLContext
        self.suites: frozenset[str] | None
        self._server_since_s: float | None = None
        self._use(values, read_material(values))

    def check(self, values: Mapping[str, Value]) -> None:
        """Whether these settings, with the files as they are, could be used. Raises `ConfigError`."""
        material = read_material(values)
        self._check_same_subject(values, material)
        ListenerTrust(values, is_served=self.is_served, is_dialled=self._is_dialled)

    def update(self, values: Mapping[str, Value], material: Material) -> None:
        """New settings, or new files. Raises `ConfigError`, and then everything is as it was (KIP-978)."""
        self._check_same_subject(values, material)
        self._use(values, material)

    def _use(self, values: Mapping[str, Value], material: Material) -> None:
        server = server_context(values, material) if self.is_served else None
        client = client_context(values, material)
        mapping = PrincipalMapping(str(values.get("ssl.principal.mapping.rules") or "DEFAULT"))
        if server is not None and self._is_dialled:
            check_mutual_trust(server, client)
        self.server, self.client, self._mapping = server, client, mapping
        self._server_since_s = None
        self.values, self.material, self.suites = values, material, allowed_suites(values)

    def server_at(self, now_s: float) -> ssl.SSLContext:
        """What the next client shakes hands with."""
        server = self.server
        assert server is not None, "a listener shows a certificate"
        if server.verify_mode == ssl.CERT_NONE or server.minimum_version >= ssl.TLSVersion.TLSv1_3:
            return server
        if self._server_since_s is None:
            self._server_since_s = now_s
        elif now_s - self._server_since_s >= _MOST_RESUMED_S:
            server = self.server = server_context(self.values, self.material)
            self._server_since_s = now_s
        return server

    def _check_same_subject(self, values: Mapping[str, Value], material: Material) -> None:
        before, after = _leaf(self.material), _leaf(material)
        if before is None or after is None or before == after:
            return
        try:
            has_same_name = subject_of(before) == subject_of(after)
            has_same_places = alternative_names_of(before) <= alternative_names_of(after)
        except ValueError:
            return  # OpenSSL says it better.
        if not has_same_name and not values.get("ssl.allow.dn.changes"):
            raise _unlike(f"of {subject_of(before)}, as before (or ssl.allow.dn.changes=true)", subject_of(after))
        if not has_same_places and not values.get("ssl.allow.san.changes"):
            raise _unlike("for all alternative names of the one before (or ssl.allow.san.changes=true)", "fewer names")

    def principal_of(self, certificate: bytes | None) -> str:
        """Of a client that showed this certificate. Raises `ValueError` if there is none for it."""
        if certificate is None:
            return ANONYMOUS
        return f"User:{self._mapping.name_of(subject_of(certificate))}"


def check_mutual_trust(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Nodes show each other these certificates. Raises `ConfigError` if they would refuse them."""
    identified, client.check_hostname = client.check_hostname, False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(_MOST_ROUNDS):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLError as problem:
        reason = getattr(problem, "verify_message", "") or problem.reason or str(problem)
        raise ConfigError(
            (
                Problem(
                    "ssl.keystore.location",
                    str(reason),
                    "a certificate that ssl.truststore.location trusts: nodes show it to each other",
                ),
            )
        ) from problem
    finally:
        client.check_hostname = identified


def _leaf(material: Material) -> bytes | None:
    if material.key is None:
        return None
    certificates = certificates_of(material.key.chain)
    try:
        return ssl.PEM_cert_to_DER_cert(certificates[0].decode()) if certificates else None
    except ValueError:
        return None


def expiry_of(material: Material) -> float | None:
    """When our certificate expires, in seconds since 1970; None if there is none, or none that can be read."""
    leaf = _leaf(material)
    try:
        return None if leaf is None else ssl.cert_time_to_seconds(valid_until(leaf))
    except ValueError:
        return None


def _unlike(bound: str, text: str) -> ConfigError:
    return ConfigError((Problem("ssl.keystore.location", text, f"a certificate {bound}"),))
