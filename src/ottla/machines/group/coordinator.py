"""All groups of one partition of `__consumer_offsets`."""

from ottla.machines.coordinator import CoordinatorMachine, TransactionStamp
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image import MetadataImage
from ottla.wire.message import Message


class GroupCoordinator(CoordinatorMachine):
    """`image` is the cluster as this broker knows it: which topics there are."""

    def __init__(self, settings: GroupSettings, image: MetadataImage) -> None:
        self._settings = settings
        self._image = image

    def replay(self, key: Message, value: Message | None) -> None:
        pass

    def replay_in_transaction(self, stamp: TransactionStamp, key: Message, value: Message | None) -> None:
        pass
