"""What can be wrong with a metadata log: records that do not follow from the ones before them."""

from ottla.base.errors import StorageError


class CorruptMetadataError(StorageError):
    """A record that cannot be replayed. The log is not one that a controller wrote, or we misread it: stop."""


class UnsupportedMetadataError(StorageError):
    """The log was written at a feature level that this version does not know."""
