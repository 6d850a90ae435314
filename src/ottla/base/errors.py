"""The three families of exceptions. Outcomes that go over the wire are values of `ErrorCode`, not exceptions."""


class OttlaError(Exception):
    """Anything this package raises on purpose. A broken invariant is an `AssertionError` instead."""


class ProtocolError(OttlaError):
    """Bytes or a sequence of messages that break Kafka's protocol."""


class RemoteProtocolError(ProtocolError):
    """The other side sent what the protocol does not allow."""


class LocalProtocolError(ProtocolError):
    """We tried to send what the protocol does not allow: a bug in the caller."""


class StorageError(OttlaError):
    """The disk, or what is on it, is not as it must be."""


class ClientError(OttlaError):
    """A client operation could not be carried out."""
