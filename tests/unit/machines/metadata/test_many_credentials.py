"""How many credentials one request may change: as many records as Apache Kafka writes at once, and none of more."""

from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterUserScramCredentialsRequest
from tests.unit.machines.metadata.controllers import ControllerUnderTest, one_node


def request(users: int) -> AlterUserScramCredentialsRequest:
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    return AlterUserScramCredentialsRequest(
        upsertions=[
            upsertion(name=f"u{number}", mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32))
            for number in range(users)
        ]
    )


def outcome(node: ControllerUnderTest, users: int) -> tuple[set[int], int, int]:
    decision = node.controller.decide(request(users), 0, 0)
    results = decision.reply.results
    return {result.error_code for result in results}, len(results), len(decision.records)


def test_as_many_as_go_into_one_batch_are_changed() -> None:
    """And beside the first users, the secret for those that there are not."""
    assert outcome(one_node(), MOST_RECORDS) == ({ErrorCode.NONE}, MOST_RECORDS, MOST_RECORDS + 1)


def test_of_more_none_is_changed_and_each_is_told_so() -> None:
    assert outcome(one_node(), MOST_RECORDS + 1) == ({ErrorCode.UNKNOWN_SERVER_ERROR}, MOST_RECORDS + 1, 0)
