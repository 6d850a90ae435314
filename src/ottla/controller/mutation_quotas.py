"""The limit on changes of the cluster (KIP-599): partitions that a client makes or removes, by user and client id.

Each topic of a request counts with the partitions that are made or removed, also if it is only checked
(`validate_only`). A client of a new version is strict: a topic that comes when its bucket is overdrawn is refused with
THROTTLING_QUOTA_EXCEEDED, and it tries again. An older client would not know what to do, and is told to wait. Both hear
how long, and the broker that the client is connected to mutes it for that time.

What a node needs for itself, such as the topic of committed offsets, is not counted.
"""

from ottla.apis.table import APIS
from ottla.controller.committed_decisions import decide
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.quota.limits import MUTATION, TokenBucket, find_limit
from ottla.runtime.channels import THIS_NODE, Failed, Then
from ottla.wire.message import Message


def decide_counted(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    """As `decide`, and what is decided counts."""
    user = asked.caller.principal.partition(":")[2]
    limit = find_limit(server.image.quotas.by_entity, MUTATION, user, asked.caller.client_id)
    if limit is None or asked.caller == THIS_NODE:
        decide(server, asked, then, failed)
        return
    strict_since = APIS[asked.request._schema.api_key].strict_since
    is_strict = strict_since is not None and asked.version >= strict_since
    bucket = server.mutation_buckets.of(limit.sharers)
    charge = _Charge(server, bucket, limit.per_second, is_strict=is_strict)

    def decided(reply: Message) -> None:
        throttle_ms = reply.throttle_time_ms = charge.throttle_ms  # type: ignore[attr-defined]
        if throttle_ms:
            now_ms = elapsed_ms(server)
            bucket.throttle_times.note(throttle_ms, now_ms)
            server.mutation_buckets.waiting.add(throttle_ms, now_ms)
        then(reply)

    decide(server, asked, decided, failed, charge.admit)


def elapsed_ms(server: ControllerServer) -> int:
    """The time that buckets go by, which nobody sets back."""
    return int(server.timers.now_s() * 1000)


class _Charge:
    """What one request is charged with."""

    __slots__ = ("_bucket", "_is_strict", "_limit", "_server", "_wait_until_ms")

    def __init__(self, server: ControllerServer, bucket: TokenBucket, limit: float, *, is_strict: bool) -> None:
        self._server = server
        self._bucket = bucket
        self._limit = limit
        self._is_strict = is_strict
        self._wait_until_ms = 0

    def admit(self, partitions: int) -> bool:
        now_ms, bucket, limit = elapsed_ms(self._server), self._bucket, self._limit
        is_admitted = not self._is_strict or bucket.tokens(limit, now_ms) >= 0
        if is_admitted:
            bucket.take(partitions, limit, now_ms)
        if not self._is_strict or not is_admitted:
            self._wait_until_ms = max(self._wait_until_ms, now_ms + bucket.throttle_ms(limit, now_ms))
        return is_admitted

    @property
    def throttle_ms(self) -> int:
        """What is left of the wait when the reply is given."""
        return max(self._wait_until_ms - elapsed_ms(self._server), 0)
