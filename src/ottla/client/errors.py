"""What a client raises: a class for each of Kafka's error codes, and those of the client's own.

    try:
        admin.create_topics([NewTopic("clicks", partitions=3)]).raise_first()
    except TopicAlreadyExists:
        ...

A class is named as its code is: TOPIC_ALREADY_EXISTS is `TopicAlreadyExists`. Its docstring says what happened, and
then what to do; both are in the message. A broker's own words take the place of the first half.

What a producer can do about an error, its type says (KIP-1050). `RetriableError`: the same may succeed later, and has
been tried again for as long as the settings allow. `FatalError`: this producer cannot continue; close it. Any other
error is abortable: the transaction must be aborted, and the producer continues.

One file because it is a table, which a reader searches by name.
"""

from typing import Any, ClassVar

from ottla.base.errors import ClientError
from ottla.base.ids import TopicPartition
from ottla.wire.errors import ErrorCode

_BY_CODE: dict[int, "type[KafkaError]"] = {}


class KafkaError(ClientError):
    """Something that a broker refused, or a client could not do."""

    code: int = ErrorCode.UNKNOWN_SERVER_ERROR
    """Kafka's error code; that of UNKNOWN_SERVER_ERROR for errors of a client's own that have none."""
    retriable: ClassVar[bool] = False
    """Whether the same may succeed later."""
    fatal: ClassVar[bool] = False
    """Whether a producer that meets it must be closed."""
    partition: TopicPartition | None = None
    """Which partition it is about, where that is known."""

    def __init_subclass__(cls, code: ErrorCode | None = None) -> None:
        if code is not None:
            assert code.retriable == cls.retriable, f"{cls.__name__} has the wrong base"
            cls.code = code
            _BY_CODE[code] = cls

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        """What the broker or the client had to say, if anything."""

    def __str__(self) -> str:
        what_happened, _, what_to_do = " ".join((type(self).__doc__ or type(self).__name__).split()).partition(". ")
        if self.message:
            what_happened = self.message.rstrip().rstrip(".")
        if not what_to_do:
            return what_happened
        return f"{what_happened}{'' if what_happened.endswith('?') else '.'} {what_to_do}"

    @property
    def abortable(self) -> bool:
        """Whether a transaction that meets it must be aborted, and its producer can continue."""
        return not self.retriable and not self.fatal

    @property
    def needs_metadata(self) -> bool:
        """Whether the client has to refresh its metadata before it tries again."""
        return self.code in _REFRESH


class RetriableError(KafkaError):
    """Did not work this time. The same may succeed later."""

    retriable = True


class FatalError(KafkaError):
    """Cannot continue. Close this client, mend the cause, and make a new one."""

    fatal = True


def error_for(code: int, message: str | None = None) -> KafkaError:
    """The error of a code in a response. A code of a broker newer than this client is an `UnknownServerError`."""
    assert code != ErrorCode.NONE, "no error"
    if known := _BY_CODE.get(code):
        return known(message)
    error = UnknownServerError(
        message or f"The broker answered with error code {code}, which this client does not know"
    )
    error.code = code
    return error


class UnknownServerError(KafkaError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The broker failed while it worked on the request. Its log says why."""


# Records and partitions


class OffsetOutOfRange(KafkaError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset is not in the partition's log. Seek to one that is, or set `auto.offset.reset`."""

    offset: int | None = None


class CorruptMessage(RetriableError, code=ErrorCode.CORRUPT_MESSAGE):
    """The broker found a batch that is damaged, or a record without a key for a compacted topic.

    Give every record of a compacted topic a key.
    """


class UnknownTopicOrPartition(RetriableError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The broker knows no such topic or partition, or not yet. Check the name, or create the topic first."""


class InvalidFetchSize(KafkaError, code=ErrorCode.INVALID_FETCH_SIZE):
    """The broker refuses the size of the fetch. Check `fetch.max.bytes` and `max.partition.fetch.bytes`."""


class LeaderNotAvailable(RetriableError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """The partition has no leader at the moment. Try again once one of its replicas is back."""


class NotLeaderOrFollower(RetriableError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """The broker no longer leads or holds the partition. Trying again finds the one that does."""


class RequestTimedOut(RetriableError, code=ErrorCode.REQUEST_TIMED_OUT):
    """No answer came in time. Try again, or give `request.timeout.ms` or the call's timeout more room."""


class BrokerNotAvailable(KafkaError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """The broker is not available. Try again when it is back."""


class ReplicaNotAvailable(RetriableError, code=ErrorCode.REPLICA_NOT_AVAILABLE):
    """The broker does not hold a replica of the partition yet. Try again shortly."""


class MessageTooLarge(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """A record is larger than the broker takes. Send less at once, or raise the topic's `max.message.bytes`."""


class RecordTooLarge(MessageTooLarge):
    """A record is larger than the producer may send.

    Raise the producer's `max.request.size`, and the topic's `max.message.bytes` if the record is beyond that, too.
    """


class StaleControllerEpoch(KafkaError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    """The controller has moved to another node. Try again."""


class OffsetMetadataTooLarge(KafkaError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The metadata of a committed offset is too long. Shorten it, or raise the broker's `offset.metadata.max.bytes`."""


class Disconnected(RetriableError, code=ErrorCode.NETWORK_EXCEPTION):
    """The connection to the broker was lost before its answer came.

    Check that the broker is up and the address is right.
    """


class InvalidTopic(KafkaError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """The topic's name is not allowed, or it is an internal topic. Use up to 249 letters, digits, `.`, `_` and `-`."""


class RecordListTooLarge(KafkaError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batch is larger than a segment of the log. Lower `batch.size`, or raise the topic's `segment.bytes`."""


class NotEnoughReplicas(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than `min.insync.replicas` asks for. Bring the missing brokers back."""


class NotEnoughReplicasAfterAppend(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The records were written, but fewer replicas than `min.insync.replicas` have them.

    Bring the missing brokers back.
    """


class InvalidRequiredAcks(KafkaError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """The broker refuses the value of `acks`. Use all, 1 or 0."""


class InvalidTimestamp(KafkaError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record's timestamp is further from the broker's time than the topic allows.

    Check the clock, or the topic's `message.timestamp.before.max.ms` and `.after.max.ms`.
    """


class UnsupportedForMessageFormat(KafkaError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The broker stores the topic in an old format that cannot hold this. Upgrade the broker or the topic."""


class KafkaStorageError(RetriableError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """A disk of the broker failed. Try again once another replica leads, and look at the broker's disks."""


class FetchSessionIdNotFound(RetriableError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
    """The broker has forgotten the fetch session. The consumer starts a new one by itself."""


class InvalidFetchSessionEpoch(RetriableError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH):
    """The fetch session is out of step. The consumer starts a new one by itself."""


class FetchSessionTopicIdError(RetriableError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
    """The fetch session mixes names and ids of topics. The consumer starts a new one by itself."""


class ListenerNotFound(RetriableError, code=ErrorCode.LISTENER_NOT_FOUND):
    """The partition's leader has no listener of the kind that this client uses.

    Give every broker the same listeners.
    """


class FencedLeaderEpoch(RetriableError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The client's knowledge of the partition's leader is outdated. Trying again brings it up to date."""


class UnknownLeaderEpoch(RetriableError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The broker does not know yet of the leader epoch that the client has. Try again shortly."""


class UnsupportedCompressionType(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The records are compressed in a way that the request's version does not allow. Use another `compression.type`."""


class OffsetNotAvailable(RetriableError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """A new leader does not know its high watermark yet. Try again shortly."""


class InvalidRecord(KafkaError, code=ErrorCode.INVALID_RECORD):
    """The broker refuses a record of the batch.

    Its message says which and why; the others of the batch were not written either.
    """


class UnknownTopicId(RetriableError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """The broker knows no topic of this id; it may have been deleted and made anew. Refresh and try again."""


class InconsistentTopicId(RetriableError, code=ErrorCode.INCONSISTENT_TOPIC_ID):
    """The topic was deleted and made anew meanwhile. Refresh and try again."""


class OffsetMovedToTieredStorage(KafkaError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    """The offset is only in tiered storage. Read it through the partition's leader."""


# Topics and settings


class TopicAlreadyExists(KafkaError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """A topic of this name exists already. Use it, or choose another name."""


class InvalidPartitions(KafkaError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is not possible. It must be at least 1, and can only grow."""


class InvalidReplicationFactor(KafkaError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The replication factor is not possible. It must be at least 1 and at most the number of brokers that are up."""


class InvalidReplicaAssignment(KafkaError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The assignment of replicas is not possible. Name brokers that exist, each once, and every partition from 0."""


class InvalidConfig(KafkaError, code=ErrorCode.INVALID_CONFIG):
    """A setting or its value is not allowed. The message says which."""


class PolicyViolation(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """A policy of the cluster forbids it. The message says which rule."""


class TopicDeletionDisabled(KafkaError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """The cluster does not allow topics to be deleted. Set `delete.topic.enable` on its controllers."""


class InvalidRequest(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """The broker cannot make sense of the request. The message or the broker's log says why."""


class SecurityDisabled(KafkaError, code=ErrorCode.SECURITY_DISABLED):
    """The cluster has no authorizer. Configure one before working with ACLs."""


class OperationNotAttempted(KafkaError, code=ErrorCode.OPERATION_NOT_ATTEMPTED):
    """The broker did not try, because another part of the request failed. Correct that part and try again."""


class LogDirNotFound(KafkaError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The broker has no such log directory. Name one of its `log.dirs`, exactly as it is written there."""


class ReassignmentInProgress(KafkaError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """The partition's replicas are being moved. Wait until that is done, or cancel it."""


class NoReassignmentInProgress(KafkaError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """The partition's replicas are not being moved. There is nothing to cancel."""


class PreferredLeaderNotAvailable(RetriableError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The first replica of the partition is not up or not in sync. Try again when it is."""


class EligibleLeadersNotAvailable(RetriableError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica of the partition may become leader. Bring one that was in sync back."""


class ElectionNotNeeded(RetriableError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition has the leader that the election would give it. Nothing needs doing."""


class ThrottlingQuotaExceeded(RetriableError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """The quota of changes is used up for now. Try again later, or ask for a larger quota."""


class ResourceNotFound(KafkaError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """There is no such resource. Check its name."""


class DuplicateResource(KafkaError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The request names a resource twice. Name each once."""


class UnacceptableCredential(KafkaError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """The credential is not acceptable. The message says why: often too few iterations, or an unknown mechanism."""


# The cluster and its metadata


class UnsupportedVersion(FatalError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The broker does not serve this request, or not in a version that the call needs.

    Upgrade it, or leave out what it does not know.
    """


class NotController(RetriableError, code=ErrorCode.NOT_CONTROLLER):
    """The node is not the active controller. Trying again finds the one that is."""


class InconsistentVoterSet(KafkaError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    """One of the two nodes does not count the other among the quorum's voters. Check `controller.quorum.voters`."""


class InvalidUpdateVersion(KafkaError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The feature cannot be given that version. `describe_features` tells which are possible."""


class FeatureUpdateFailed(KafkaError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The features could not be changed. The controller's log says why."""


class PrincipalDeserializationFailure(KafkaError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
    """A node could not read the principal of a forwarded request. Give all nodes the same principal builder."""


class SnapshotNotFound(KafkaError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    """There is no such snapshot of the metadata. Fetch the newest instead."""


class PositionOutOfRange(KafkaError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    """The position is outside the snapshot. Start again from its beginning."""


class StaleBrokerEpoch(KafkaError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker has registered anew since. Use its new epoch."""


class DuplicateBrokerRegistration(KafkaError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """Another broker that is up has this id. Give each its own `node.id`."""


class BrokerIdNotRegistered(KafkaError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """No broker of this id is registered. Check the id."""


class InconsistentClusterId(KafkaError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The node belongs to another cluster. Check the address, or the cluster id."""


class IneligibleReplica(KafkaError, code=ErrorCode.INELIGIBLE_REPLICA):
    """A replica may not join the ISR, because it is fenced or shutting down. Wait until it is back."""


class NewLeaderElected(KafkaError, code=ErrorCode.NEW_LEADER_ELECTED):
    """The partition was changed and got another leader. Refresh the metadata."""


class MismatchedEndpointType(KafkaError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    """The address is a broker's where a controller's is needed, or the other way round.

    Use `bootstrap.servers` for brokers and `bootstrap.controllers` for controllers.
    """


class UnsupportedEndpointType(KafkaError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    """The node does not know this kind of endpoint. Upgrade it."""


class UnknownControllerId(KafkaError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    """No controller of this id is known. Check the id."""


class UnknownSubscriptionId(KafkaError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    """The broker has changed what metrics it wants. The client asks again by itself."""


class TelemetryTooLarge(KafkaError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    """The pushed metrics are larger than the broker takes. Raise its `telemetry.max.bytes`."""


class InvalidRegistration(KafkaError, code=ErrorCode.INVALID_REGISTRATION):
    """The controller refuses the broker's registration. Its log says why."""


class InvalidVoterKey(KafkaError, code=ErrorCode.INVALID_VOTER_KEY):
    """The voter's directory id is not the node's. Take it from its `meta.properties`."""


class DuplicateVoter(KafkaError, code=ErrorCode.DUPLICATE_VOTER):
    """The node is a voter already. Nothing needs doing."""


class VoterNotFound(KafkaError, code=ErrorCode.VOTER_NOT_FOUND):
    """The node is not a voter. `describe_metadata_quorum` lists those that are."""


class RebootstrapRequired(KafkaError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The broker asks clients to start over from `bootstrap.servers`. The client does so by itself."""


# Groups


class CoordinatorLoadInProgress(RetriableError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still reading its log. Try again shortly."""


class CoordinatorNotAvailable(RetriableError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """The group or transactional id has no coordinator at the moment.

    Try again; if it stays so, look at the brokers and at `offsets.topic.replication.factor`.
    """


class NotCoordinator(RetriableError, code=ErrorCode.NOT_COORDINATOR):
    """The coordinator has moved to another broker. Trying again finds it."""


class IllegalGeneration(KafkaError, code=ErrorCode.ILLEGAL_GENERATION):
    """The member's generation is over: the group has rebalanced without it. Poll again to join anew."""


class InconsistentGroupProtocol(KafkaError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member has no assignor in common with its group, or is of another protocol.

    Give all members a common assignor.
    """


class InvalidGroupId(KafkaError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is empty or not allowed. Set `group.id`."""


class UnknownMemberId(KafkaError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The coordinator has removed the member from its group, often because it was silent too long.

    Poll again to join anew.
    """


class InvalidSessionTimeout(KafkaError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The broker does not allow this session timeout.

    Keep it between its `group.min.session.timeout.ms` and `group.max.session.timeout.ms`.
    """


class RebalanceInProgress(KafkaError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing. Poll, and commit afterwards."""


class InvalidCommitOffsetSize(KafkaError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """The commit is too large to be written. Commit fewer partitions at once, or shorter metadata."""


class NonEmptyGroup(KafkaError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group has members. Stop them first."""


class GroupIdNotFound(KafkaError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """There is no such group. Check the group id."""


class MemberIdRequired(KafkaError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """The member has to join again with the id that it was given. The consumer does so by itself."""


class GroupMaxSizeReached(KafkaError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group is full. Run fewer members, or raise the broker's `group.max.size`."""


class FencedInstanceId(KafkaError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another consumer runs with the same `group.instance.id`. Give each its own."""


class GroupSubscribedToTopic(KafkaError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """A member of the group is subscribed to the topic. Stop it, or unsubscribe, before offsets are deleted."""


class UnstableOffsetCommit(RetriableError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    """An open transaction may still commit offsets of the partition. Try again when it has ended."""


class FencedMemberEpoch(KafkaError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The coordinator has fenced the member. Poll again to join anew."""


class UnreleasedInstanceId(KafkaError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member of the group still has this `group.instance.id`. Wait until it has left."""


class UnsupportedAssignor(KafkaError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The coordinator does not know the assignor. Set `group.remote.assignor` to one of its, or leave it out."""


class StaleMemberEpoch(KafkaError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member's epoch is behind. Try again after the next heartbeat."""


class InvalidRegularExpression(KafkaError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The subscription is not a valid regular expression. Brokers use the syntax of RE2."""


class InvalidRecordState(KafkaError, code=ErrorCode.INVALID_RECORD_STATE):
    """The record can no longer be acknowledged: its lock has ended, or it was acknowledged before.

    Poll more often, or acknowledge sooner.
    """


class ShareSessionNotFound(RetriableError, code=ErrorCode.SHARE_SESSION_NOT_FOUND):
    """The broker has forgotten the share session. The consumer starts a new one by itself."""


class InvalidShareSessionEpoch(RetriableError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH):
    """The share session is out of step. The consumer starts a new one by itself."""


class ShareSessionLimitReached(RetriableError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED):
    """The broker has as many share sessions as it allows. Try again later, or raise its limit."""


class FencedStateEpoch(KafkaError, code=ErrorCode.FENCED_STATE_EPOCH):
    """The share coordinator has a newer state of the partition. Try again."""


class StreamsInvalidTopology(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    """The topology of the streams application is not possible. The message says why."""


class StreamsInvalidTopologyEpoch(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """The topology epoch of the streams application is not possible. It must not be older than the group's."""


class StreamsTopologyFenced(KafkaError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    """The streams application has a newer topology. Upgrade this instance."""


# Producers and transactions


class OutOfOrderSequenceNumber(KafkaError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """Records of an idempotent producer are missing before these.

    Earlier ones may be lost: check what was delivered.
    """


class DuplicateSequenceNumber(KafkaError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """The broker has these records already. Nothing needs doing."""


class InvalidProducerEpoch(KafkaError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """The transaction was ended by the coordinator, or a newer producer took over.

    Abort the transaction and try it again.
    """


class InvalidTxnState(FatalError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction is not in a state that allows it. Close the producer and make a new one."""


class InvalidProducerIdMapping(FatalError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The transactional id has another producer id by now; it may have expired.

    Close the producer and make a new one.
    """


class InvalidTransactionTimeout(FatalError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The broker does not allow so long a transaction.

    Keep `transaction.timeout.ms` within its `transaction.max.timeout.ms`.
    """


class ConcurrentTransactions(RetriableError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """The transactional id is still busy with its previous transaction. Try again shortly."""


class TransactionCoordinatorFenced(KafkaError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """A newer coordinator has taken over the transaction. It will finish it."""


class UnknownProducerId(KafkaError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The broker no longer has records of this producer. The producer starts a new epoch by itself."""


class ProducerFenced(FatalError, code=ErrorCode.PRODUCER_FENCED):
    """A newer producer with the same `transactional.id` has taken over.

    Close this one; run one producer for each id.
    """


class TransactionalIdNotFound(KafkaError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """There is no such transactional id. Check it; it may have expired."""


class TransactionAbortable(KafkaError, code=ErrorCode.TRANSACTION_ABORTABLE):
    """The transaction cannot be completed. Abort it and try it again."""


# Security


class TopicAuthorizationFailed(KafkaError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """The principal may not do this with the topic. Ask for an ACL on it."""


class GroupAuthorizationFailed(KafkaError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """The principal may not do this with the group. Ask for an ACL on it."""


class ClusterAuthorizationFailed(FatalError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """The principal may not do this with the cluster. Ask for an ACL on it."""


class TransactionalIdAuthorizationFailed(FatalError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """The principal may not use this transactional id. Ask for an ACL on it."""


class UnsupportedSaslMechanism(FatalError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not know the SASL mechanism. Set `sasl.mechanism` to one that it has."""


class IllegalSaslState(FatalError, code=ErrorCode.ILLEGAL_SASL_STATE):
    """The SASL conversation is out of order. Check that both sides use the same security protocol."""


class SaslAuthenticationFailed(FatalError, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    """The broker does not accept the credentials. Check user, password and mechanism."""


class DelegationTokenAuthDisabled(KafkaError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    """The cluster does not use delegation tokens. Set `delegation.token.secret.key` on its nodes."""


class DelegationTokenNotFound(KafkaError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    """There is no such delegation token. It may have expired."""


class DelegationTokenOwnerMismatch(KafkaError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """The principal is neither owner nor renewer of the token. Ask one of them."""


class DelegationTokenRequestNotAllowed(KafkaError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """Delegation tokens cannot be managed over this connection. Authenticate with SASL, and not by a token."""


class DelegationTokenAuthorizationFailed(KafkaError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """The principal may not do this with the token. Ask for an ACL on it."""


class DelegationTokenExpired(KafkaError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    """The delegation token has expired. Make a new one."""


class InvalidPrincipalType(KafkaError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    """The type of the principal is not supported. Use User."""


# What a client finds out by itself


class SslAuthenticationFailed(FatalError):
    """TLS with the broker did not come about. Check certificates, their names, and `security.protocol`."""


class NotABroker(KafkaError):
    """What listens at the address is no Kafka broker. Check `bootstrap.servers`, host and port."""


class ClientClosed(KafkaError):
    """The client was closed. Make a new one."""


class ForkedClient(KafkaError):
    """The process forked after the client was made. Make a client of its own in each process, after the fork."""


class InvalidState(KafkaError):
    """The call is not allowed now. The message says what has to come first."""


class OtherEventLoop(InvalidState):
    """The client was made in another event loop. Make one in each event loop, and close it in its own."""


class ConcurrentUse(InvalidState):
    """Two threads use one consumer. Make one for each thread; only `wakeup()` and `metrics()` are for any."""


class Wakeup(KafkaError):
    """Another thread called `wakeup()`. Poll again, or leave the loop."""


class NoBrokerReachable(Disconnected):
    """None of the known brokers could be reached. Check `bootstrap.servers`, the network, and the brokers."""

    call = ""
    """The method of the admin that it was for."""


class BufferExhausted(RetriableError):
    """The producer's memory was full for `max.block.ms`.

    Send more slowly, raise `buffer.memory`, or look why the brokers are slow.
    """


class DeliveryTimedOut(KafkaError):
    """The record could not be delivered within `delivery.timeout.ms`.

    It may or may not have been written. Look at the brokers, or allow more time.
    """


class TransactionAborted(KafkaError):
    """The record was not sent, because its transaction was aborted. Send it again in a new transaction."""


class SerializationFailed(KafkaError):
    """A key or value could not be turned into bytes. The cause says why."""


class DeserializationFailed(KafkaError):
    """A record's key or value could not be read. Seek beyond it, or send it to a dead-letter topic."""

    record: Any = None
    """The `ConsumerRecord`, its key and value in bytes. The consumer stands before it."""


class NoOffsetForPartition(KafkaError):
    """The group has no committed offset, and `auto.offset.reset` is none. Seek, or set it to earliest or latest."""

    partitions: tuple[TopicPartition, ...] = ()


class LogTruncated(KafkaError):
    """Records that were consumed are no longer in the log: it was cut after an unclean election (KIP-320).

    Decide where to continue, and seek there; or set `auto.offset.reset`.
    """

    diverging_offset: int | None = None
    """The first offset at which the log is known to be another one; None if no broker can tell."""


class CommitFailed(KafkaError):
    """The offsets were not committed, because the group has given the partitions to another member.

    Poll more often than `max.poll.interval.ms`, or with a smaller `max.poll.records`.
    """


_REFRESH = frozenset(code for code in ErrorCode if code.invalid_metadata)
