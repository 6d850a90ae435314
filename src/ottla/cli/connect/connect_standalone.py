"""`connect-standalone FILE CONNECTOR…`, as Kafka's."""

from ottla.cli.connect.starting import standalone as main

__all__ = ["main"]
