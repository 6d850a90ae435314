"""One record, as everyone above the kernel sees it, and the kernel's choice of how to make it."""

from ottla.records.columns import Header, Headers
from ottla.records.kernel import Record

__all__ = ["Header", "Headers", "Record"]
