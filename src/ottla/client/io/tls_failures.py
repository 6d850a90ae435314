"""Why TLS did not come about, in a sentence that says what to change.

What a certificate or a setting has to mend becomes `TlsFailed`, which is not tried again. A connection that only broke
off stays an `OSError`, as in Kafka's clients: the broker may be restarting. So does one whose bytes were damaged on
their way, once the handshake is over.
"""

import errno
import ssl
from typing import Final

from ottla.client.world import TlsFailed
from ottla.security.tls.handshake import HandshakeFailed
from ottla.security.tls.transport import explained

# OpenSSL's numbers of what is wrong with a certificate (x509_vfy.h), for which `ssl` has no names.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_UNKNOWN_ISSUER: Final = frozenset((2, 7, 18, 19, 20, 21))
_WRONG_NAME: Final = frozenset((62, 64))

_OF_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS; is this a PLAINTEXT or SASL_PLAINTEXT listener?",
    "RECORD_LAYER_FAILURE": "it does not speak TLS; is this a PLAINTEXT or SASL_PLAINTEXT listener?",
    "HTTP_REQUEST": "it does not speak TLS",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate of the client; set ssl.keystore.location",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "it refused the handshake: there is no common cipher suite or protocol, or it wants a certificate of the client"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the CA of our certificate (ssl.keystore.location)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired (ssl.keystore.location)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept our certificate, or wants one (ssl.keystore.location)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust our certificate (ssl.keystore.location)",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it has none of our TLS versions (ssl.enabled.protocols)",
    "UNSUPPORTED_PROTOCOL": "it has none of our TLS versions (ssl.enabled.protocols)",
    "NO_CIPHERS_AVAILABLE": "none of ssl.cipher.suites can be used",
}


def handshake_failure(problem: OSError, where: str) -> OSError:
    """`where` is the broker's address, as host:port."""
    if not isinstance(problem, HandshakeFailed):
        return problem  # There was no connection to speak TLS over.
    return failure(problem.problem, where) if problem.problem else TlsFailed(f"no TLS with {where}: {problem}")


def failure(problem: OSError, where: str) -> OSError:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return TlsFailed(f"the certificate of {where} {_what_is_wrong(problem)}")
    if isinstance(problem, ssl.SSLEOFError | ConnectionError):
        return OSError(
            errno.ECONNRESET,
            "it ended the connection during the TLS handshake; does the listener have TLS (security.protocol)?",
        )
    if isinstance(problem, ssl.SSLError):
        reason = problem.reason or str(problem)
        return TlsFailed(f"no TLS with {where}: {_OF_REASONS.get(reason) or reason.lower().replace('_', ' ')}")
    return problem


def later_failure(problem: OSError, where: str) -> OSError:
    """After the handshake. With TLS 1.3 a broker refuses our certificate only then, and says so in an alert. All else
    is this one connection's: what was damaged on its way, or came twice, does not decrypt.
    """
    if isinstance(problem, ssl.SSLError) and not (problem.reason in _OF_REASONS and "_ALERT_" in problem.reason):
        return ConnectionAbortedError(errno.ECONNABORTED, explained(problem))
    return failure(problem, where)


def _what_is_wrong(problem: ssl.SSLCertVerificationError) -> str:
    code = problem.verify_code
    if code == _EXPIRED:
        return "has expired"
    if code == _NOT_YET_VALID:
        return "is not valid yet; is this machine's clock right?"
    if code in _UNKNOWN_ISSUER:
        return f"is of no CA that ssl.truststore.location has ({problem.verify_message})"
    if code in _WRONG_NAME:
        return f"is for another name: {problem.verify_message.rstrip('.')} (ssl.endpoint.identification.algorithm)"
    return f"cannot be verified: {problem.verify_message}"
