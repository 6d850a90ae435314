"""What the active controller decides because time has passed.

Brokers that have fallen silent are fenced (`broker.session.timeout.ms`); leaders are put back where they are preferred
(`auto.leader.rebalance.enable`, `leader.imbalance.check.interval.seconds`); partitions whose topic allows it get an
unclean leader (`unclean.leader.election.enable`), which Kafka looks into every five minutes, and we also as soon as
somebody allows it; delegation tokens that have expired are removed (`delegation.token.expiry.check.interval.ms`);
and the log gets a no-op record (`metadata.max.idle.interval.ms`, KIP-835), so that the replicas that follow an idle
leader show that they keep up. A leader that nobody follows has nobody to show it, and does not wake its disk. On a node
whose controller is not active nothing is decided. What raises is tried anew when its time comes again.

These are the periodic tasks of Apache Kafka 4.3.1's controller, but for a line that it logs once a minute about its own
events. A reassignment has no time at which it ends by itself, there or here: it continues until its replicas are in
sync, or until somebody cancels it (KIP-455).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.controller.controller_server import ControllerServer
from ottla.machines.decision import Decision
from ottla.machines.metadata.controller.leadership import UNCLEAN_ELECTION
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.runtime.apart import ask_surely
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.machines.metadata.controller.controller import Controller

_CHECKS_PER_SESSION: Final = 8
_UNCLEAN_ELECTION_S: Final = 300.0

Decide = Callable[["Controller", int], Decision[bool]]


class TimedDecisions:
    """Of one node, for as long as its timers run."""

    def __init__(self, server: ControllerServer) -> None:
        self._server = server
        self._under_way: set[str] = set()

    def start(self) -> None:
        config, every = self._server.config, self._server.timers.every
        session_s = config.integer("broker.session.timeout.ms") / 1000
        every(
            max(session_s / _CHECKS_PER_SESSION, 0.05),
            lambda: self._decide("fencing", lambda controller, now_ms: controller.fence_silent_broker(now_ms)),
        )
        if config["auto.leader.rebalance.enable"]:
            every(
                config.integer("leader.imbalance.check.interval.seconds"),
                lambda: self._decide("balance", lambda controller, now_ms: controller.balance_leaders(now_ms)),
            )
        every(_UNCLEAN_ELECTION_S, self._elect_unclean_leaders)

        now_ms = self._server.clock.now_ms
        if config["delegation.token.secret.key"] is not None:
            every(
                config.integer("delegation.token.expiry.check.interval.ms") / 1000,
                lambda: self._decide("tokens", lambda controller, _: controller.remove_expired_tokens(now_ms())),
            )
        idle_ms = config.integer("metadata.max.idle.interval.ms")
        if idle_ms:
            every(idle_ms / 1000, self._write_no_op)

    def on_metadata(self, delta: MetadataDelta) -> None:
        """An operator who allows unclean elections waits for them."""
        by_resource = self._server.image.configs.by_resource
        if any(by_resource.get(resource, {}).get(UNCLEAN_ELECTION) == "true" for resource in delta.configs):
            self._server.timers.after(0, self._elect_unclean_leaders)

    def _elect_unclean_leaders(self) -> None:
        self._decide("unclean", lambda controller, now_ms: controller.elect_unclean_leaders(now_ms))

    def _write_no_op(self) -> None:
        quorum, now_ms = self._server.quorum, self._server.clock.now_ms()
        if quorum.leader_id != self._server.node_id:
            return
        if len(quorum.voters(now_ms)) > 1 or quorum.observers(now_ms):
            self._decide("no-op", lambda controller, now_ms: controller.write_no_op(now_ms))

    def _decide(self, name: str, decide: Decide) -> None:
        """Again and again while there is more to decide, one decision after the other."""
        if name in self._under_way:
            return
        self._under_way.add(name)

        def then(has_more: bool) -> None:
            self._under_way.discard(name)
            if has_more:
                self._decide(name, decide)

        def failed(_error: ErrorCode) -> None:
            self._under_way.discard(name)

        ask_surely(self._server.timers, lambda *heard: self._server.log.submit(decide, *heard), then, failed)
