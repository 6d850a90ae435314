"""Ids of log directories that stand for no directory (KIP-858). The first hundred ids are reserved for such use."""

from ottla.base.ids import ZERO_UUID, Uuid

MIGRATING = ZERO_UUID
"""The replica is somewhere; the log was written before directories were recorded."""

UNASSIGNED = Uuid((1).to_bytes(16, "big"))
"""The replica's broker has yet to pick a directory."""

LOST = Uuid((2).to_bytes(16, "big"))
"""The replica was in a directory that is gone."""


def is_reserved(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < 100


def is_online(directory: Uuid, online: tuple[Uuid, ...]) -> bool:
    """Whether a replica in `directory` can be served by a broker that has said which directories work.

    A broker that has said nothing (an older one) is trusted, and so are the ids that name no directory, but for LOST.
    """
    if directory in (UNASSIGNED, MIGRATING):
        return True
    return directory != LOST and (not online or directory in online)
