"""Certificates as tests need them: of this CA or another, for this name or another, expired or not.

authority = Authority(directory)
node = authority.issue("node", names=("localhost", "127.0.0.1"))
node.pem            # key and certificate in one file, as `ssl.keystore.location` takes it with type PEM
authority.pem       # what `ssl.truststore.location` takes
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Issued(NamedTuple):
    pem: Path
    key: Path
    certificate: Path


class Authority:
    """A CA of its own. Files are named after what was issued."""

    def __init__(self, directory: Path, name: str = "test CA") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        now = datetime.now(UTC)
        builder = _builder(self._name, self._name, self._key, now - DAY, now + 30 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        self.pem = directory / f"{name.replace(' ', '-')}.pem"
        self.pem.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, names: tuple[str, ...] = ("localhost", "127.0.0.1"), expired: bool = False) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        ends = now - DAY if expired else now + 10 * DAY
        builder = _builder(_subject(name), self._name, key, now - 5 * DAY, ends)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        issued = Issued(*(self._directory / f"{name}{kind}" for kind in (".pem", ".key", ".crt")))
        issued.pem.write_bytes(private + certificate)
        issued.key.write_bytes(private)
        issued.certificate.write_bytes(certificate)
        return issued


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
