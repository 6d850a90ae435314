"""When each broker was last heard of. Soft state: no record holds it, and a new controller starts with everybody fresh.

This is the one part of the controller that changes without `replay`: a heartbeat that changes nothing else would not
be worth a record. What follows from a session that ran out is a record like any other: the broker is fenced.
"""


class Session:
    """What the active controller knows of a broker beyond the metadata: when it was heard of, and how far it is."""

    __slots__ = ("epoch", "heard_at_ms", "is_heard", "metadata_offset", "shutdown_offset")

    def __init__(self, epoch: int, heard_at_ms: int, is_heard: bool = True) -> None:
        self.epoch = epoch
        self.heard_at_ms = heard_at_ms
        self.is_heard = is_heard
        """Heard of by this controller; False while a broker that an earlier one knew has its first chance to speak."""
        self.metadata_offset = -1
        self.shutdown_offset = -1
        """Where the log ended when the broker asked to shut down; it may go when the others have read that far."""


class BrokerSessions:
    __slots__ = ("by_broker",)

    def __init__(self) -> None:
        self.by_broker: dict[int, Session] = {}

    def touch(self, broker_id: int, epoch: int, now_ms: int, metadata_offset: int | None = None) -> Session:
        """Notes a sign of life; another epoch is another life."""
        session = self.by_broker.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self.by_broker[broker_id] = Session(epoch, now_ms)
        session.heard_at_ms, session.is_heard = now_ms, True
        if metadata_offset is not None:
            session.metadata_offset = metadata_offset
        return session

    def expect(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Starts the session of a broker that was not heard of yet."""
        if broker_id not in self.by_broker:
            self.by_broker[broker_id] = Session(epoch, now_ms, is_heard=False)

    def end(self, broker_id: int) -> None:
        """The broker said goodbye."""
        self.by_broker.pop(broker_id, None)

    def valid(self, broker_id: int, epoch: int, now_ms: int, timeout_ms: int) -> Session | None:
        """The session of a broker in this life of it, if it has one that did not run out."""
        session = self.by_broker.get(broker_id)
        if session is None or session.epoch != epoch or now_ms - session.heard_at_ms >= timeout_ms:
            return None
        return session
