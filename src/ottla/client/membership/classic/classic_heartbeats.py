"""The heartbeats of a classic member: timers on the client's loop, whether or not the application polls."""

from collections.abc import Callable

from ottla.base.pacing import Backoff
from ottla.client.errors import KafkaError, error_for
from ottla.client.membership.classic.classic_requests import heartbeat_request
from ottla.client.membership.group_coordinator import GroupCoordinator
from ottla.client.membership.member import Identity, MemberSettings
from ottla.client.world import ClientWorld
from ottla.wire.errors import ErrorCode

_FOR_THE_MEMBER = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


class ClassicHeartbeats:
    """From `start` to `stop`, one each `heartbeat.interval.ms`; sooner after one that failed on the way.

    `on_refused` is called with what the coordinator has against the member, and as whom it had asked. `on_failed` is
    notified of an error that trying again does not mend.
    """

    def __init__(
        self,
        world: ClientWorld,
        coordinator: GroupCoordinator,
        settings: MemberSettings,
        identity: Callable[[], Identity],
        on_refused: Callable[[ErrorCode, Identity], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        self._world = world
        self._coordinator = coordinator
        self._settings = settings
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._identity = identity
        self._on_refused = on_refused
        self._on_failed = on_failed
        self._number = 0

    def start(self) -> None:
        self._number += 1
        self._world.start(self._beat(self._number))

    def stop(self) -> None:
        self._number += 1

    async def _beat(self, number: int) -> None:
        failures = 0
        pause_ms: float = self._settings.heartbeat_interval_ms
        while True:
            await self._world.sleep(pause_ms)
            if number != self._number:
                return
            try:
                await self._ask_once(number)
                failures = 0
                pause_ms = self._settings.heartbeat_interval_ms
            except KafkaError as problem:
                if number != self._number:
                    return
                if not problem.retriable:
                    self._on_failed(problem)
                    return
                self._coordinator.note(problem.code)
                pause_ms = min(self._settings.heartbeat_interval_ms, self._backoff.after(failures, self._world.entropy))
                failures += 1

    async def _ask_once(self, number: int) -> None:
        identity = self._identity()
        request = heartbeat_request(self._settings.group_id, identity)
        response = await self._coordinator.ask(request, self._settings.session_timeout_ms)
        error = response.error_code
        if number != self._number or error == ErrorCode.NONE:
            return
        if error not in _FOR_THE_MEMBER:
            raise error_for(error)
        self._on_refused(ErrorCode(error), identity)
