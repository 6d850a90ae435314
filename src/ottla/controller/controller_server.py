"""What every answer of a controller is given: the node's identity, the metadata log, the quorum, and how to wait."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ottla.apis.description import load
from ottla.config.parse import Values
from ottla.machines.decision import Decision
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.quota.limits import TokenBuckets
from ottla.machines.quota.rates import Windows
from ottla.runtime.channels import Caller, Failed, Then
from ottla.runtime.metadata.quorum.quorum_answers import QuorumAnswers
from ottla.runtime.metadata.quorum.quorum_view import QuorumView
from ottla.runtime.metadata.quorum.voter_changes import VoterChanges
from ottla.runtime.metadata.replication.metadata_leader import MetadataLeader
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.machines.metadata.controller.controller import Controller
    from ottla.runtime.rate_limited_log import RateLimitedLog
    from ottla.serving.access.gate import Gate

ReplyT = TypeVar("ReplyT")


class ControllerRequest(NamedTuple):
    """A request as data, whichever way it came: from this process, in an envelope, or over a connection."""

    request: Any
    version: int
    caller: Caller
    listener: str = ""
    """The one that it came over; empty where it did not come over a connection of its own."""


class DecisionLog(Protocol):
    """The metadata log, as far as an answer has to do with it."""

    def submit(
        self,
        decide: "Callable[[Controller, int], Decision[ReplyT]]",
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Lets this node's controller decide, and hands the reply to `then` once the decision is committed.

        `failed` hears NOT_CONTROLLER where another node's controller is the active one.
        """


class QuorumReplicaLog(Protocol):
    """This node's replica of the metadata log, as far as the other replicas ask it."""

    @property
    def answers(self) -> QuorumAnswers | None: ...

    @property
    def leader(self) -> MetadataLeader | None: ...

    @property
    def voter_changes(self) -> VoterChanges | None: ...


class ControllerServer:
    """See the module. `image` is the committed one. It is a `ControllerChannel` for the broker in its process."""

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        node_settings: NodeSettings,
        image: MetadataImage,
        log: DecisionLog,
        quorum: QuorumView,
        world: World,
        replica: QuorumReplicaLog | None = None,
        gate: "Gate | None" = None,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.node_settings = node_settings
        self.image = image
        self.log = log
        self.quorum = quorum
        self.world = world
        self.replica = replica
        """What other replicas of the metadata log are answered by; None where there can be none."""
        self.gate = gate
        """Looks after what clients may do, where not everyone may do everything."""
        self.clock = world.clock
        self.timers = world.timers
        self.workers = world.workers
        self._change_log: RateLimitedLog | None = None
        self.mutation_buckets = TokenBuckets(_windows_of(node_settings.static))

    @property
    def config(self) -> Values:
        return self.node_settings.effective

    def logging_change(self, log_lines: str, asked: ControllerRequest, then: Then) -> Then:
        """`then`, with who changed what in the log before it."""
        from ottla.controller.change_log import rate_limited_log, telling

        if self._change_log is None:
            self._change_log = rate_limited_log(self.timers.now_s)
        return telling(load(log_lines), self._change_log, asked.request, asked.caller, then)

    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        """Answers by the same table as the listeners of controllers."""
        from ottla.controller.controller_apis import answer

        answer(self, ControllerRequest(request, version, caller), then, failed)


def _windows_of(values: Values) -> Windows:
    return Windows(
        values.integer("controller.quota.window.num"), values.integer("controller.quota.window.size.seconds") * 1000
    )
