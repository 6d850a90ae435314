"""What `security.protocol` asks for: TLS (SSL), proof of who we are (SASL), both, or neither."""

from typing import NamedTuple

from ottla.config.parse import Values


class Protection(NamedTuple):
    has_tls: bool
    has_sasl: bool

    @classmethod
    def of(cls, settings: Values) -> "Protection":
        protocol = settings.text("security.protocol").upper()
        return cls(has_tls=protocol.endswith("SSL"), has_sasl=protocol.startswith("SASL_"))
