"""What tools take as text: times, durations, partitions, plans, settings."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.cli.configs.texts import java_double, parse_settings
from ottla.cli.failures import Terse
from ottla.cli.groups.reset_offsets import parse_partitions, parse_plan
from ottla.cli.groups.reset_times import datetime_ms, duration_ms
from ottla.cli.options.checks import UsageError
from ottla.cli.topics.choosing import chosen
from ottla.cli.topics.get_offsets import parse_rule, time_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T02:00:00.000+02:00", 0),
        ("2020-01-01T00:00:00", 1577836800000),
    ],
)
def test_dates_without_a_zone_are_utc(text: str, expected: int) -> None:
    assert datetime_ms(text) == expected


@pytest.mark.parametrize("text", ["bad", "2020-01-01", "2020-13-01T00:00:00"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(Terse, match=r"java\.text\.ParseException"):
        datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("-PT1S", -1000), ("pt-1s", -1000)],
)
def test_durations_are_javas(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "P1DT"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Terse, match="Text cannot be parsed to a Duration"):
        duration_ms(text)


def test_partitions_of_a_topic() -> None:
    assert parse_partitions("a:0,2") == [TopicPartition("a", 0), TopicPartition("a", 2)]
    with pytest.raises(UsageError, match="Invalid partition 'x' specified in topic arg 'a:x''"):
        parse_partitions("a:x")


def test_a_plan_has_lines_of_one_group_or_names_groups() -> None:
    one = TopicPartition("a", 0)
    assert parse_plan("a,0,5\n", ["g"]) == {"g": {one: 5}}
    assert parse_plan('"g,1",a,0,5\nh,a,0,6\n', ["g", "h"]) == {"g,1": {one: 5}, "h": {one: 6}}
    with pytest.raises(Terse, match="Not a line of an offsets file: a,0,5"):
        parse_plan("a,0,5\n", ["g", "h"])


def test_topics_by_pattern() -> None:
    assert chosen(["b", "a", "ab"], None) == ["a", "ab", "b"]
    assert chosen(["b", "a", "ab"], "a.*") == ["a", "ab"]
    assert chosen(["b", "a", "ab"], "'b, ab'") == ["ab", "b"]
    with pytest.raises(Terse, match="invalid regex"):
        chosen(["a"], "(")


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [("t:1", [1]), ("t:1-3", [1, 2]), ("t:2-", [2, 3]), ("t:-2", [0, 1]), ("t", [0, 1, 2, 3]), (":3", [3]), ("u", [])],
)
def test_rules_for_partitions(rule: str, wanted: list[int]) -> None:
    matches = parse_rule(rule)
    assert [number for number in range(4) if matches(TopicPartition("t", number))] == wanted


def test_a_rule_that_is_none_and_a_time_that_is_none_are_refused() -> None:
    with pytest.raises(Terse, match="Invalid rule specification: t:a"):
        parse_rule("t:a")
    with pytest.raises(Terse, match="Malformed time argument soon"):
        time_of("soon")
    assert time_of("earliest") == -2
    assert time_of("123") == 123


def test_brackets_hold_a_setting_together() -> None:
    assert parse_settings("a=b,c=[d,e], f = g ") == {"a": "b", "c": "d,e", "f": "g"}
    for text in ("a", "a=", "a=b,", "=b"):
        with pytest.raises(Terse, match="Invalid entity config"):
            parse_settings(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1024, "1024.0"), (0, "0.0"), (0.5, "0.5"), (10485760, "1.048576E7"), (1e10, "1.0E10"), (1e-4, "1.0E-4")],
)
def test_numbers_are_printed_as_java_prints_them(number: float, text: str) -> None:
    assert java_double(number) == text
