"""A client of the registry that the options name."""

import argparse

from ottla.client.blocking.schema_registry import SchemaRegistryClient


def connect(options: argparse.Namespace) -> SchemaRegistryClient:
    return SchemaRegistryClient(
        options.url,
        basic_auth=options.basic_auth,
        token=options.token,
        ssl_ca_location=options.ca,
        ssl_certificate_location=options.cert,
        ssl_key_location=options.key,
        cache_capacity=10_000,
    )


def connect_target(options: argparse.Namespace) -> SchemaRegistryClient:
    """The other registry of `copy`."""
    return SchemaRegistryClient(
        options.to, basic_auth=options.to_basic_auth, token=options.to_token, ssl_ca_location=options.to_ca
    )
