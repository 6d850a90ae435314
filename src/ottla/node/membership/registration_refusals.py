"""Why a controller does not take a broker: its error, with the setting that a person would look at."""

from ottla.broker.cluster.node_identity import NodeIdentity
from ottla.wire.errors import ErrorCode


def reason_of(error: ErrorCode, identity: NodeIdentity) -> str:
    match error:
        case ErrorCode.INCONSISTENT_CLUSTER_ID:
            why = f"it is of another cluster than this node's log.dirs, whose cluster.id is {identity.cluster_id}"
        case ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            why = f"another broker with node.id={identity.node_id} is up, or was until a moment ago"
        case ErrorCode.INVALID_REGISTRATION:
            why = "another broker has a directory.id of this node's log.dirs: one is a copy of the other"
        case ErrorCode.UNSUPPORTED_VERSION:
            why = "the cluster uses a feature that this broker does not have (kafka-features describe)"
        case ErrorCode.RECORD_LIST_TOO_LARGE:
            why = "what it tells of itself is more than the metadata log takes; it has too many listeners or log.dirs"
        case _:
            return error.name
    return f"{why} ({error.name})"
