"""The error codes against the facts about them."""

import pytest

from ottla.wire import facts
from ottla.wire.errors import ErrorCode


def test_the_error_codes_are_those_of_the_facts() -> None:
    of_facts = {
        fact["name"]: (fact["code"], fact["retriable"], fact["invalid_metadata"])
        for fact in facts.load("errors")["errors"]
    }
    assert {code.name: (int(code), code.retriable, code.invalid_metadata) for code in ErrorCode} == of_facts


def test_a_code_is_a_number_and_a_number_is_a_code() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == 6
    assert ErrorCode(6).invalid_metadata
    assert not ErrorCode.NONE


def test_a_code_of_a_newer_version_is_an_unknown_error() -> None:
    assert ErrorCode(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode("30000")
