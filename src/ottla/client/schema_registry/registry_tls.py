"""TLS to registries, over a client's plain way to connect."""

from ottla.base.ports import Dialer
from ottla.client.schema_registry.registry_settings import RegistryClientSettings
from ottla.client.world import ClientWorld


def registry_tls(world: ClientWorld, settings: RegistryClientSettings) -> Dialer | None:
    """None where all URLs are http. Raises `ConfigError` for certificates and keys that cannot be used."""
    if settings.ssl is None:
        return None
    from ottla.security.tls.contexts import allowed_suites, client_context
    from ottla.security.tls.dialling import TlsDialer
    from ottla.security.tls.transport import SCRATCH_BYTES

    context, suites = client_context(settings.ssl), allowed_suites(settings.ssl)
    return TlsDialer(
        world.dialer,
        lambda: context,
        lambda callback: _soon(world, callback),
        lambda: suites,
        scratch=memoryview(bytearray(SCRATCH_BYTES)),
    )


def _soon(world: ClientWorld, callback: object) -> None:
    assert callable(callback)
    world.timers.after(0, callback)
