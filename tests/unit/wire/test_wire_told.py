"""Errors whose message repeats what a client sent."""

from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode, error_with_message


def test_a_message_that_fits_is_told() -> None:
    assert error_with_message(ErrorCode.INVALID_CONFIG, "x" * 32767) == (ErrorCode.INVALID_CONFIG, "x" * 32767)
    assert error_with_message(ErrorCode.INVALID_CONFIG, None) == (ErrorCode.INVALID_CONFIG, None)


def test_one_that_does_not_is_an_unknown_error_as_at_kafka() -> None:
    assert error_with_message(ErrorCode.INVALID_CONFIG, "x" * 32768) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert error_with_message(ErrorCode.INVALID_CONFIG, "é" * 20000) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_refusals_are_told_so() -> None:
    assert Refusal(ErrorCode.INVALID_CONFIG, "x" * 32768) == Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
