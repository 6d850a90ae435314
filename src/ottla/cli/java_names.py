"""Errors as Kafka's tools print them: by the name of Java's class.

Scripts look for `GroupIdNotFoundException`, so that is what it is called here. A broker's message is printed as it is;
where the broker gave none, Java's client has a sentence for each code, and we have ours.
"""

from typing import Final

from ottla.cli.failures import error_text
from ottla.client.errors import KafkaError, NoBrokerReachable
from ottla.wire.errors import ErrorCode

PACKAGE: Final = "org.apache.kafka.common.errors."

_UNLIKE_THEIR_CODE: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}


def java_class(code: int) -> str:
    """The exception of an error code, without its package."""
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
    if special := _UNLIKE_THEIR_CODE.get(known):
        return special
    words = known.name.removesuffix("_EXCEPTION").split("_")
    return "".join(word.capitalize() for word in words) + "Exception"


def java_text(error: KafkaError) -> str:
    """As Java prints an exception."""
    return f"{java_exception(error)}: {error_text(error)}"


def java_exception(problem: BaseException) -> str:
    """Its class with the package; of an error that Kafka does not have, our own."""
    if isinstance(problem, NoBrokerReachable):
        return f"{PACKAGE}{_UNLIKE_THEIR_CODE[ErrorCode.REQUEST_TIMED_OUT]}"
    return f"{PACKAGE}{java_class(problem.code)}" if isinstance(problem, KafkaError) else type(problem).__name__


def java_error_text(problem: BaseException) -> str:
    """What went wrong, as the tools of Kafka's print it that do not look into what a future failed with."""
    return java_text(problem) if isinstance(problem, KafkaError) else error_text(problem)
