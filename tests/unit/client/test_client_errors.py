"""Every code has a class, whose type says what a client can do about it."""

import pickle

import pytest

import ottla.errors
from ottla.base.errors import ClientError
from ottla.client.errors import (
    Disconnected,
    FatalError,
    KafkaError,
    NotLeaderOrFollower,
    ProducerFenced,
    RetriableError,
    TopicAlreadyExists,
    UnknownServerError,
    error_for,
)
from ottla.wire.errors import ErrorCode

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_code_has_a_class_that_is_named_after_it(code: ErrorCode) -> None:
    error = error_for(code)
    name = code.name.removesuffix("_EXCEPTION").title().replace("_", "")
    assert type(error).__name__ == ("Disconnected" if code is ErrorCode.NETWORK_EXCEPTION else name)
    assert error.code is code
    assert getattr(ottla.errors, type(error).__name__) is type(error)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_an_error_is_retriable_and_needs_metadata_as_its_code_says(code: ErrorCode) -> None:
    error = error_for(code)
    assert (error.retriable, error.needs_metadata) == (code.retriable, code.invalid_metadata)
    assert isinstance(error, RetriableError) == code.retriable


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_an_error_is_one_of_retriable_abortable_and_fatal(code: ErrorCode) -> None:
    error = error_for(code)
    assert [error.retriable, error.abortable, error.fatal].count(True) == 1
    assert isinstance(error, FatalError) == error.fatal


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_a_message_says_what_happened_and_what_to_do(code: ErrorCode) -> None:
    what_happened, _, what_to_do = str(error_for(code)).partition(". ")
    assert what_happened[0].isupper()
    assert what_to_do.endswith(".")


def test_a_brokers_own_words_come_first_and_what_to_do_stays() -> None:
    error = TopicAlreadyExists("Topic 'clicks' already exists.")
    assert str(error) == "Topic 'clicks' already exists. Use it, or choose another name."
    assert error.message == "Topic 'clicks' already exists."


def test_a_question_ends_with_its_own_mark() -> None:
    asked = str(error_for(ErrorCode.OFFSET_OUT_OF_RANGE, "is that the topic that was meant?"))
    assert asked.startswith("is that the topic that was meant? Seek to one")


def test_a_code_that_a_newer_broker_has_is_told_by_its_number() -> None:
    error = error_for(4711)
    assert type(error) is UnknownServerError
    assert error.code == 4711
    assert "4711" in str(error)
    assert UnknownServerError().code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_errors_are_of_the_clients_family() -> None:
    assert isinstance(error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), NotLeaderOrFollower)
    assert issubclass(KafkaError, ClientError)
    assert Disconnected().needs_metadata
    assert ProducerFenced().fatal


def test_an_error_survives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(TopicAlreadyExists("taken")))
    assert type(error) is TopicAlreadyExists
    assert str(error) == str(TopicAlreadyExists("taken"))
