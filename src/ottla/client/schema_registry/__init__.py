"""A client of schema registries: ours, Confluent's, Karapace's, and others that speak the same API.

    registry_settings     where they are, and how one logs in
    registry_core         requests, retries and caches, without I/O
    registry_tls          TLS over a client's way to connect
    registry_errors       what goes wrong

Its faces are `client/blocking/schema_registry.py` and `client/aio/schema_registry.py`.
"""
