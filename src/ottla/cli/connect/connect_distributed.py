"""`connect-distributed FILE`, as Kafka's."""

from ottla.cli.connect.starting import distributed as main

__all__ = ["main"]
