"""How a client connects: by plain TCP, or by TLS over it, as `security.protocol` says."""

from ottla.base.ports import Dialer, Timers
from ottla.base.tcp_connect import Poller
from ottla.client.io.tcp import TcpDialer
from ottla.client.protection import Protection
from ottla.client.settings import ClientSettings


def dialer_for(poller: Poller, timers: Timers, settings: ClientSettings | None) -> Dialer:
    """Raises `ConfigError` for certificates and keys that cannot be used. Without TLS, OpenSSL is not loaded."""
    tcp = TcpDialer(poller, timers.now_s)
    if settings is None or not Protection.of(settings).has_tls:
        return tcp
    from ottla.client.io.tls import TlsToBrokers

    return TlsToBrokers(tcp, timers, settings)
