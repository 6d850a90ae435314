"""The controller: requests and the clock in, decisions out.

Theory of operation. A decision is a reply and the records that make it true. It reads the image and changes nothing;
the driver appends the records, replays each at once into the controller's image, so that the next decision builds on
it, and gives the reply out when they are committed. A controller that loses its place throws its image away and takes
a copy of the committed one when it leads again. The driver keeps `next_offset`.

Families of decisions are in `decisions`, one request a function, and imported when one of their requests is first
decided; `ottla.apis` says which API has which. `sessions` is the only state beside the image.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable, Container, Iterable
from typing import Any

from ottla.apis.description import load
from ottla.apis.table import APIS
from ottla.base.ids import Uuid, uuid_text
from ottla.config.parse import Values
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata import decisions
from ottla.machines.metadata.controller import activation
from ottla.machines.metadata.controller.controller_context import Admit, ControllerContext, Random, without_limit
from ottla.machines.metadata.image.directory_ids import is_reserved
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire import messages as m
from ottla.wire.message import Message


class Controller:
    """One controller's view and its decisions. `kraft_version` is the Raft layer's, reported by the driver."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        node_id: int,
        cluster_id: str,
        config: Values,
        new_uuid: Callable[[], Uuid],
        random: Random,
        next_offset: int = 0,
        kraft_version: int = 0,
    ) -> None:
        self.context = ControllerContext(
            image, node_id, cluster_id, config, _topic_ids(new_uuid), random, next_offset=next_offset
        )
        self.context.kraft_version = kraft_version

    @property
    def image(self) -> MetadataImage:
        return self.context.image

    @property
    def next_offset(self) -> int:
        return self.context.next_offset

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        self.context.next_offset = offset

    @property
    def kraft_version(self) -> int:
        return self.context.kraft_version

    @kraft_version.setter
    def kraft_version(self, level: int) -> None:
        self.context.kraft_version = level

    def take_over_from(self, other: Controller) -> None:
        """Goes on in the place of another, whose image is not to be relied on. When brokers were heard of is."""
        self.context.sessions = other.context.sessions

    def replay(self, record: Message) -> None:
        """The only thing that changes the image."""
        self.context.image.replay(record)

    def activate(self, bootstrap: Iterable[Message]) -> Decision[None]:
        return activation.activate(self.context, bootstrap)

    def decide(self, request: Message, version: int, now_ms: int, admit: Admit = without_limit) -> Decision[Any]:
        """What a request leads to; the reply is of the type that belongs to it.

        The row of its API (`ottla.apis`) says which function decides. That is called with the context, the request, and
        what else it names: the request's `version`, or `now_ms`, a monotonic time.
        """
        self.context.admit = admit
        row = APIS[request._schema.api_key]
        assert row.decision is not None, "an API that the controller decides on"
        decide = load(row.decision)
        code = getattr(decide, "__wrapped__", decide).__code__  # Simulations wrap some, to look at what they decide.
        known = {"version": version, "now_ms": now_ms}
        named = [known[name] for name in code.co_varnames[2 : code.co_argcount] if name in known]
        decision: Decision[Any] = decide(self.context, request, *named)
        return decision

    def alter_client_quotas(
        self, request: m.AlterClientQuotasRequest, unknown_hosts: Container[str]
    ) -> Decision[m.AlterClientQuotasResponse]:
        """As `decide`, after names of hosts have been looked up."""
        return decisions.alter_quotas.alter_client_quotas(self.context, request, unknown_hosts)

    def alter_token(
        self,
        request: m.CreateDelegationTokenRequest | m.RenewDelegationTokenRequest | m.ExpireDelegationTokenRequest,
        version: int,
        requester: str,
        now_ms: int,
    ) -> Decision[Any]:
        """As `decide`, for requests whose outcome depends on who asks (KIP-48)."""
        family = decisions.alter_tokens
        if isinstance(request, m.CreateDelegationTokenRequest):
            return family.create_token(self.context, request, version, requester, now_ms)
        if isinstance(request, m.RenewDelegationTokenRequest):
            return family.renew_token(self.context, request, requester, now_ms)
        return family.expire_token(self.context, request, requester, now_ms)

    # What time brings: the driver asks every now and then

    def fence_silent_broker(self, now_ms: int) -> Decision[bool]:
        """One at a time: ask again, once the records are replayed, while the reply is True."""
        return decisions.heartbeats.fence_silent_broker(self.context, now_ms)

    def fence_lost_broker(self, broker_id: int, epoch: int) -> Decision[bool]:
        return decisions.heartbeats.fence_lost_broker(self.context, broker_id, epoch)

    def balance_leaders(self, now_ms: int) -> Decision[bool]:
        return decisions.elect_leaders.balance_leaders(self.context)

    def elect_unclean_leaders(self, now_ms: int) -> Decision[bool]:
        return decisions.elect_leaders.elect_unclean_leaders(self.context)

    def remove_expired_tokens(self, now_ms: int) -> Decision[bool]:
        """Some at a time, as `fence_silent_broker`."""
        return decisions.alter_tokens.remove_expired_tokens(self.context, now_ms)

    def write_no_op(self, now_ms: int) -> Decision[bool]:
        """A record that changes nothing, so that the log moves (KIP-835)."""
        return Decision(False, [VersionedRecord(m.NoOpRecord(), 0)])


def _topic_ids(new_uuid: Callable[[], Uuid]) -> Callable[[], Uuid]:
    """Ids that are not reserved, and whose text does not look like an option on a command line."""

    def topic_id() -> Uuid:
        while is_reserved(candidate := new_uuid()) or uuid_text(candidate).startswith("-"):
            pass
        return candidate

    return topic_id
