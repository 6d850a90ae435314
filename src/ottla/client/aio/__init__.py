"""Clients for asyncio: `ottla.aio.Producer`, `ottla.aio.Consumer`, `ottla.aio.Admin`."""
