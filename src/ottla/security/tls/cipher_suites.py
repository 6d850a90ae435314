"""The names of cipher suites. Kafka's settings have Java's (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), OpenSSL its own."""

from typing import Final

TLS_1_3: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3, which are called the same everywhere."""

NOT_A_SUITE: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""A signal that Java lists among the suites. OpenSSL sends it by itself."""


def openssl_name(suite: str) -> str:
    """What OpenSSL calls a suite of TLS 1.2 or older. A name that is not Java's is returned as it is."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator or not suite.startswith("TLS_"):
        return suite
    cipher = cipher.replace("_CBC_", "_").replace("AES_", "AES")
    if cipher.startswith("CHACHA20_POLY1305"):
        cipher = "CHACHA20_POLY1305"  # OpenSSL leaves out its only hash.
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return (prefix + cipher).replace("_", "-")
