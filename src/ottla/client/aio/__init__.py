"""Clients for asyncio: `ottla.aio.Producer`, `Consumer`, `Admin`, `SchemaRegistryClient`."""
