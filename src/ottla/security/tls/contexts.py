"""From `ssl.*` settings to the context that TLS connections are made with.

Contexts know nothing of Kafka: what Java's TLS would do with the same settings is done here with OpenSSL's means. A
certificate in the trust store is trusted whatever signed it, as in Java. Nothing is resumed in TLS 1.3, so that
certificates are checked with every connection, and connections are never negotiated a second time.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.config.values import HIDDEN, Value
from ottla.security.tls.cipher_suites import NOT_A_SUITE, TLS_1_3, openssl_name
from ottla.security.tls.key_files import key_file
from ottla.security.tls.stores import KeyMaterial, Material, read_material, wrong

if TYPE_CHECKING:
    import ssl

_VERSIONS: Final = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")


def server_context(values: Mapping[str, Value], material: Material | None = None) -> "ssl.SSLContext":
    """For the listener that these settings are of. `material` is what has been read already. Raises `ConfigError`."""
    import ssl

    material = material or read_material(values)
    if material.key is None:
        raise wrong("ssl.keystore.location", None, "given, or ssl.keystore.key: a TLS listener shows a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions(context, values)
    context.num_tickets = 0
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    asked = str(values.get("ssl.client.auth") or "none").lower()
    if asked != "none":
        context.verify_mode = ssl.CERT_REQUIRED if asked == "required" else ssl.CERT_OPTIONAL
        _trust(context, material.trusted, for_clients=True)
    _show(context, material.key)
    return context


def client_context(values: Mapping[str, Value], material: Material | None = None) -> "ssl.SSLContext":
    """For connecting to others. `check_hostname` is off where endpoints are not to be identified."""
    import ssl

    material = material or read_material(values)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit_versions(context, values)
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https") or ""
    if str(algorithm).lower() not in ("", "https"):
        raise wrong("ssl.endpoint.identification.algorithm", str(algorithm), "https, or empty")
    context.check_hostname = algorithm != ""
    _trust(context, material.trusted, for_clients=False)
    if material.key is not None:
        _show(context, material.key)
    return context


def allowed_suites(values: Mapping[str, Value]) -> frozenset[str] | None:
    """The suites of TLS 1.3 that a connection may have got, or None for any: OpenSSL cannot be given them before
    Python 3.15, so a connection with another one is given up once that is known.
    """
    chosen = TLS_1_3.intersection(_items(values, "ssl.cipher.suites"))
    return chosen if chosen and chosen != TLS_1_3 else None


def _items(values: Mapping[str, Value], key: str) -> tuple[str, ...]:
    value = values.get(key)
    if isinstance(value, str):
        value = tuple(item.strip() for item in value.split(","))
    return tuple(filter(None, value)) if isinstance(value, tuple) else ()


def _limit_versions(context: "ssl.SSLContext", values: Mapping[str, Value]) -> None:
    """`ssl.protocol`, `ssl.enabled.protocols` and `ssl.cipher.suites`, which leaves only versions that have one."""
    import ssl

    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    newest = str(values.get("ssl.protocol") or "TLSv1.3")
    if newest not in ("TLS", *_VERSIONS):
        raise wrong("ssl.protocol", newest, "TLSv1.3, TLSv1.2 or TLS")
    enabled = _items(values, "ssl.enabled.protocols") or ("TLSv1.2", "TLSv1.3")
    for version in enabled:
        if version not in _VERSIONS:
            raise wrong("ssl.enabled.protocols", ",".join(enabled), f"a list of {', '.join(_VERSIONS)}")
    suites = [suite for suite in _items(values, "ssl.cipher.suites") if suite != NOT_A_SUITE]
    older = [suite for suite in suites if suite not in TLS_1_3]
    wanted = {version for version in enabled if not suites or (older if version != "TLSv1.3" else older != suites)}
    if not wanted:
        raise wrong("ssl.cipher.suites", ",".join(suites), f"suites of {' or '.join(enabled)}")
    numbers = sorted(_VERSIONS.index(version) for version in wanted)
    known = [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
    context.minimum_version, context.maximum_version = known[numbers[0]], known[numbers[-1]]
    exclusions = [ssl.OP_NO_TLSv1, ssl.OP_NO_TLSv1_1, ssl.OP_NO_TLSv1_2, ssl.OP_NO_TLSv1_3]
    for number in range(numbers[0], numbers[-1]):
        if number not in numbers:
            context.options |= exclusions[number]
    if older:
        for suite in older:
            _set_suites(context, (suite,), suite)  # one by one: OpenSSL passes over names that it does not know
        _set_suites(context, older, ",".join(older))


def _set_suites(context: "ssl.SSLContext", suites: "list[str] | tuple[str, ...]", text: str) -> None:
    import ssl

    try:
        context.set_ciphers(":".join(map(openssl_name, suites)))
    except ssl.SSLError:
        raise wrong("ssl.cipher.suites", text, "suites that the TLS library has") from None


def _trust(context: "ssl.SSLContext", trusted: bytes | None, *, for_clients: bool) -> None:
    import ssl

    if trusted is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH if for_clients else ssl.Purpose.SERVER_AUTH)
        return
    try:
        context.load_verify_locations(cadata=trusted.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as problem:
        raise wrong("ssl.truststore.location", None, f"certificates that can be read ({problem})") from problem


def _show(context: "ssl.SSLContext", key: KeyMaterial) -> None:
    """Has connections show our certificates."""
    import ssl

    password = key.password or ""  # not None: OpenSSL would ask for it at the terminal
    try:
        with key_file(key.chain) as chain_path, key_file(key.key) as key_path:
            context.load_cert_chain(chain_path, key_path, password=password)
    except (ssl.SSLError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or "PEM lib"
        if reason == "KEY_VALUES_MISMATCH":
            raise wrong(key.key_setting, HIDDEN, "the key of the certificate that comes with it") from problem
        raise wrong(
            key.key_setting, HIDDEN, "a private key in PEM with its certificates, and ssl.key.password what opens it"
        ) from problem
