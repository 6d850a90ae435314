"""ElectLeaders: the preferred leader back to its place, or any leader rather than none (KIP-183, KIP-460)."""

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import change_of
from ottla.machines.metadata.controller.partition_change import Election
from ottla.machines.metadata.image.partition_image import NO_LEADER
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ElectLeadersRequest, ElectLeadersResponse

TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}
MOST_ELECTIONS = 1_000
"""In one round of balancing leaders."""

NOT_NEEDED = Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
NO_PREFERRED = Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
NOBODY = Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")


def elect_leaders(context: ControllerContext, request: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
    """Asked for all partitions, those that need no election are left out of the reply."""
    election = TYPES.get(request.election_type)
    if election is None:
        return Decision(_unknown_type(request))
    is_for_all = request.topic_partitions is None
    if request.topic_partitions is None:
        wanted = [(topic.name, sorted(topic.partitions)) for topic in context.image.topics.by_id.values()]
    else:
        wanted = [(asked.topic, list(asked.partitions)) for asked in request.topic_partitions]
    reply = ElectLeadersResponse()
    records: list[VersionedRecord] = []
    for topic, numbers in wanted:
        results = []
        for number in numbers:
            elected = _elect(context, topic, number, election)
            if isinstance(elected, VersionedRecord):
                records.append(elected)
            if not (is_for_all and elected is NOT_NEEDED):
                results.append(_result(number, elected if isinstance(elected, Refusal) else None))
        reply.replica_election_results.append(
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=results)
        )
    return Decision(reply, records, atomic=False)


def balance_leaders(context: ControllerContext) -> Decision[bool]:
    """Leads partitions back to their preferred leaders, a limited number at a time; True if there is more to do."""
    records: list[VersionedRecord] = []
    for topic, _, number, partition in context.partitions():
        if partition.leader != partition.preferred_leader:
            elected = _elect(context, topic, number, Election.PREFERRED)
            if isinstance(elected, VersionedRecord):
                records.append(elected)
                if len(records) == MOST_ELECTIONS:
                    break
    return Decision(len(records) == MOST_ELECTIONS, records, atomic=False)


def elect_unclean_leaders(context: ControllerContext) -> Decision[bool]:
    """Where unclean election is allowed, partitions without a leader get one that is alive; True if there is more."""
    records: list[VersionedRecord] = []
    for topic, _, number, partition in context.partitions():
        if partition.leader == NO_LEADER and context.is_unclean_election_allowed(topic):
            elected = _elect(context, topic, number, Election.UNCLEAN)
            if isinstance(elected, VersionedRecord):
                records.append(elected)
                if len(records) == MOST_ELECTIONS:
                    break
    return Decision(len(records) == MOST_ELECTIONS, records, atomic=False)


def _elect(context: ControllerContext, name: str, number: int, election: Election) -> VersionedRecord | Refusal:
    topic = context.image.topics.by_name.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    is_preferred = election is Election.PREFERRED
    if partition.leader == partition.preferred_leader if is_preferred else partition.leader != NO_LEADER:
        return NOT_NEEDED
    change = change_of(context, name, topic.id, number)
    change.election = election
    record = change.record()
    if record is None:
        return NO_PREFERRED if is_preferred else NOBODY
    return context.partition_change(record)


def _unknown_type(request: ElectLeadersRequest) -> ElectLeadersResponse:
    unknown = Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    results = [
        ElectLeadersResponse.ReplicaElectionResult(
            topic=asked.topic, partition_result=[_result(number, unknown) for number in asked.partitions]
        )
        for asked in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=unknown.code, replica_election_results=results)


def _result(number: int, refusal: Refusal | None) -> ElectLeadersResponse.PartitionResult:
    code, message = refusal or (ErrorCode.NONE, None)
    return ElectLeadersResponse.PartitionResult(partition_id=number, error_code=code, error_message=message)
