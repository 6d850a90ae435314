"""Which partitions a fetch names, at once or, where there may be very many, in steps."""

from collections.abc import Callable

from ottla.apis.description import Division
from ottla.broker.data.fetch_sessions import PartitionKey, Wanted, wanted_partitions
from ottla.broker.data.plain_fetch import USES_TOPIC_IDS
from ottla.broker.partitions.held_partitions import Partitions
from ottla.runtime.large_requests.parts import divided
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.wire.messages import FetchRequest

_PARTITIONS = Division(("topics", "partitions"), ())


def look_up(partitions: Partitions, version: int, request: FetchRequest) -> dict[PartitionKey, Wanted]:
    by_id = version >= USES_TOPIC_IDS
    names = (
        {topic.topic_id: partitions.metadata.topic_name(topic.topic_id) for topic in request.topics} if by_id else {}
    )
    return wanted_partitions(request, by_id, names)


def look_in_steps(
    partitions: Partitions, version: int, request: FetchRequest, then: Callable[[dict[PartitionKey, Wanted]], None]
) -> Steps:
    """As `look_up`, for a request that may name very many partitions."""
    wanted: dict[PartitionKey, Wanted] = {}
    for part in divided(_PARTITIONS, request):
        assert isinstance(part, FetchRequest)
        wanted |= look_up(partitions, version, part)
        yield None
    then(wanted)
