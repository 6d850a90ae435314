"""A client of the schema registry that a converter's options name: what `make_converter` is given.

    converter = make_converter(name, options, registry=registry_client)

Options are Confluent's: `schema.registry.url`, `basic.auth.credentials.source` and `basic.auth.user.info` (USER_INFO,
or in the URL), `bearer.auth.credentials.source` and `bearer.auth.token`, and `schema.registry.ssl.` before Kafka's
settings of TLS.
"""

from collections.abc import Mapping
from typing import Final

from ottla.client.blocking.schema_registry import SchemaRegistryClient
from ottla.config.parse import ConfigError
from ottla.connect.options import InvalidOption

_PREFIXES: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
_CREDENTIALS: Final = ("basic.auth.credentials.source", "bearer.auth.credentials.source")
_INHERITED: Final = "SASL_INHERIT"


def registry_client(options: Mapping[str, str | None]) -> SchemaRegistryClient:
    """The caller closes it. Raises `InvalidOption`."""
    given = {name: value for name, value in options.items() if name.startswith(_PREFIXES) and value is not None}
    for name in _CREDENTIALS:
        if given.get(name, "").upper() == _INHERITED:
            raise InvalidOption(f"{name}={given[name]} is not supported here: set USER_INFO and basic.auth.user.info")
    try:
        return SchemaRegistryClient(given)
    except ConfigError as error:
        raise InvalidOption(str(error)) from None
