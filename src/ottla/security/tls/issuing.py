"""Certificates for trying things out: an authority, and what it signs. Needs `cryptography` (the extra `security`).

Nobody should trust such an authority with more than a trial: its key lies beside the others, in the clear.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.installing import install_command

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_DAY: Final = timedelta(days=1)


class MissingLibrary(OttlaError):
    """`cryptography` is not installed."""

    def __init__(self) -> None:
        super().__init__(f"certificates are made with the library cryptography: {install_command('security')}")


class Issued(NamedTuple):
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes

    @property
    def both(self) -> bytes:
        """What a PEM file for `ssl.keystore.location` contains."""
        return self.key + self.certificate


class Authority:
    """Signs certificates with a key of its own, which is made with it."""

    def __init__(self, name: str, now: datetime, days: int = 3650) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise MissingLibrary from None
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            self._builder(self._name, self._key, -1, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
        )
        self.issued = self._sign(certificate, self._key)

    def issue(
        self,
        subject: "str | x509.Name",
        hosts: Sequence[str] = (),
        *,
        from_days: int = -1,
        days: int = 825,
    ) -> Issued:
        """For a server at these names and addresses, and for a client; `subject` is the common name, or all of it."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        if isinstance(subject, str):
            subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            self._builder(subject, key, from_days, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if hosts:
            certificate = certificate.add_extension(
                x509.SubjectAlternativeName([_host_name(host) for host in hosts]), critical=False
            )
        return self._sign(certificate, key)

    def _builder(
        self, subject: "x509.Name", key: "EllipticCurvePrivateKey", from_days: int, days: int
    ) -> "x509.CertificateBuilder":
        from cryptography import x509

        public = key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now + from_days * _DAY)
            .not_valid_after(self._now + days * _DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _sign(self, certificate: "x509.CertificateBuilder", key: "EllipticCurvePrivateKey") -> Issued:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return Issued(
            certificate.sign(self._key, SHA256()).public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )


def _host_name(host: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
