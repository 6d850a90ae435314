"""Poison records, sent aside."""

from ottla.client.consumer.dead_letters import DeadLetters, Origin, attempts_of, dead_letter_headers, origin_of
from ottla.client.errors import DeserializationFailed
from ottla.records.kernel import ConsumerRecord

POISON = ConsumerRecord("orders", 2, 40, 1000, b"key", b"poison", (("trace", b"7"),))


class Producer:
    def __init__(self):
        self.sent = []

    def send(self, topic, value=None, key=None, **options):
        self.sent.append((topic, value, key, options))
        return "delivery"


def test_a_dead_letter_is_the_record_and_its_story():
    producer = Producer()
    outcome = DeadLetters(producer, "orders-dead", group_id="billing").send(POISON, ValueError("no such currency"))
    [(topic, value, key, options)] = producer.sent
    assert (outcome, topic, value, key, options["timestamp_ms"]) == ("delivery", "orders-dead", b"poison", b"key", 1000)
    assert options["headers"] == [
        ("trace", b"7"),
        ("dead-letter.topic", b"orders"),
        ("dead-letter.partition", b"2"),
        ("dead-letter.offset", b"40"),
        ("dead-letter.group", b"billing"),
        ("dead-letter.attempts", b"1"),
        ("dead-letter.reason", b"ValueError"),
        ("dead-letter.message", b"no such currency"),
    ]


def test_one_that_fails_again_keeps_its_origin_and_counts():
    first = tuple(dead_letter_headers(POISON, ValueError("once")))
    again = ConsumerRecord("orders-dead", 0, 3, 1000, b"key", b"poison", first)
    headers = dict(dead_letter_headers(again, KeyError("twice")))
    assert headers["dead-letter.attempts"] == b"2"
    assert headers["dead-letter.topic"] == b"orders"
    assert headers["dead-letter.reason"] == b"KeyError"
    assert headers["trace"] == b"7"
    last = ConsumerRecord("orders-dead", 0, 9, headers=tuple(headers.items()))
    assert (attempts_of(last), origin_of(last)) == (2, Origin("orders", 2, 40))
    assert (attempts_of(POISON), origin_of(POISON)) == (0, Origin("orders", 2, 40))


def test_what_could_not_be_deserialized_is_sent_as_it_came():
    producer = Producer()
    problem = DeserializationFailed("the record could not be read")
    problem.record = POISON
    problem.__cause__ = ValueError("not json")
    letters = DeadLetters(producer, lambda record: f"{record.topic}-dead")
    letters.send(problem.record, problem)
    [(topic, value, _, options)] = producer.sent
    assert (topic, value) == ("orders-dead", b"poison")
    assert dict(options["headers"])["dead-letter.reason"] == b"ValueError"


def test_headers_that_are_no_story_of_ours_do_not_mislead():
    strange = ConsumerRecord("t", 0, 1, headers=(("dead-letter.topic", None), ("dead-letter.attempts", b"many")))
    assert (attempts_of(strange), origin_of(strange)) == (0, Origin("t", 0, 1))
