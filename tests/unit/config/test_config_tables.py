"""The rows say what Apache Kafka 4.3.1 says: the facts, and what it makes of a hundred and eighty texts."""

import json
import subprocess
from pathlib import Path

import pytest

import ottla
from ottla.config.bounds import Between, Bound, Items, OneOf
from ottla.config.scopes import OWN, Scope, sections, settings
from ottla.config.setting import REQUIRED, Dynamic, Setting
from ottla.config.values import Type
from ottla.machines.metadata.settings.effective_settings import GROUP_LIMITS
from tests.interop.apache_kafka import libraries

HERE = Path(__file__).parent
FACTS = json.loads((HERE / "kafka_settings.json").read_text())
VERDICTS = json.loads((HERE / "kafka_verdicts.json").read_text())

# Rates of throttled replication can only be set while a node runs; they are no keys of a file, and have no row.
DYNAMIC_ONLY = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}

every_scope = pytest.mark.parametrize("scope", Scope, ids=lambda scope: scope.value)
KAFKAS = [scope for scope in Scope if scope is not Scope.REGISTRY]
every_scope_of_kafkas = pytest.mark.parametrize("scope", KAFKAS, ids=lambda scope: scope.value)


def default_as_kafka_prints_it(row: Setting) -> object:
    if row.default is REQUIRED:
        return "<required>"
    if isinstance(row.default, tuple):
        return f"[{', '.join(row.default)}]"
    return row.default


def bound_as_kafka_prints_it(bound: Bound | None) -> object:
    match bound:
        case Between(low, None, None):
            return f"[{low},...]"
        case Between(low, high, None):
            return f"[{low},...,{high}]"
        case Between(low, high, also):
            return f"[{low},...,{high}] or {also}"
        case OneOf(names, any_case):
            return f"{'(case insensitive) ' if any_case else ''}[{', '.join(names)}]"
        case Items(()):
            return ""
        case Items(names):
            return f"[{', '.join(names)}]"
    return None


@every_scope_of_kafkas
def test_there_is_one_row_for_each_setting(scope: Scope) -> None:
    kafkas = [name for name in settings(scope) if not name.startswith(OWN)]
    assert sorted(kafkas) == sorted(fact["name"] for fact in FACTS[scope.value])


@every_scope_of_kafkas
def test_types_defaults_and_importance_are_apache_kafkas(scope: Scope) -> None:
    for fact in FACTS[scope.value]:
        row = settings(scope)[fact["name"]]
        # Java prints a list of classes with the word "class" before each.
        default = fact["default"].replace("class ", "") if isinstance(fact["default"], str) else fact["default"]
        assert (row.type.name, default_as_kafka_prints_it(row), row.importance.name) == (
            fact["type"],
            default,
            fact["importance"],
        ), row.name


@every_scope_of_kafkas
def test_bounds_are_apache_kafkas(scope: Scope) -> None:
    for fact in FACTS[scope.value]:
        row = settings(scope)[fact["name"]]
        if isinstance(row.bound, Between | OneOf | Items) and row.name != "share.acquire.mode":
            assert bound_as_kafka_prints_it(row.bound) == fact["valid"], row.name
        elif row.bound is None:
            assert fact["valid"] in (None, "non-null string"), row.name


@every_scope_of_kafkas
def test_texts_are_accepted_and_refused_as_apache_kafka_does(scope: Scope) -> None:
    differences = []
    for verdicts, names in VERDICTS[scope.value].items():
        for name in names:
            row = settings(scope)[name]
            for text, verdict in zip(VERDICTS["texts"], verdicts, strict=True):
                try:
                    row.parse(text)
                    ours = "y"
                except ValueError:
                    ours = "."
                if ours != verdict and not is_stricter_on_purpose(row, text):
                    differences.append((name, text, f"Kafka {verdict}", f"ours {ours}"))
    assert differences == []


@pytest.mark.interop
def test_apache_kafka_still_says_so() -> None:
    answers = subprocess.run(
        ["java", "-cp", f"{libraries()}/*", str(HERE / "KafkaVerdicts.java")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(answers) == VERDICTS


def is_stricter_on_purpose(row: Setting, text: str) -> bool:
    """Not a number is inside every range for Java, because it is not outside; here it is outside."""
    return text == "NaN" and isinstance(row.bound, Between)


def test_dynamic_modes_are_apache_kafkas() -> None:
    ours = {
        row.name: row.dynamic.value
        for row in settings(Scope.BROKER).values()
        if row.dynamic is not Dynamic.READ_ONLY and not row.name.startswith("ottla.")
    }
    assert ours == {name: mode for name, mode in VERDICTS["dynamic"].items() if name not in DYNAMIC_ONLY}


def test_a_topics_settings_name_the_broker_settings_behind_them() -> None:
    ours = {row.name: [list(s) for s in row.synonyms] for row in settings(Scope.TOPIC).values() if row.synonyms}
    assert ours == VERDICTS["synonyms"]


@every_scope
def test_every_default_is_within_its_own_bounds(scope: Scope) -> None:
    for row in settings(scope).values():
        if row.default is not REQUIRED:
            row.check(row.default)


@every_scope
def test_every_setting_has_a_sentence(scope: Scope) -> None:
    for row in settings(scope).values():
        assert row.doc[0].isupper(), row.name
        assert row.doc.endswith("."), row.name
        assert "  " not in row.doc, row.name


@every_scope
def test_every_section_has_a_title(scope: Scope) -> None:
    for title, rows in sections(scope):
        assert title
        assert rows


def test_secrets_have_no_default_that_could_leak() -> None:
    for scope in Scope:
        for row in settings(scope).values():
            if row.type is Type.PASSWORD:
                assert row.default is None


@pytest.mark.slow
def test_a_setting_is_marked_as_acted_on_only_if_something_reads_it() -> None:
    source = Path(ottla.__file__).parent
    read = "\n".join(path.read_text() for path in sorted(source.rglob("*.py")) if source / "config" not in path.parents)
    acted_on = [row.name for scope in Scope for row in settings(scope).values() if row.acted_on]
    assert acted_on
    # A topic setting that is read asks its synonyms, a codec's level is read by the codec's name, limits by theirs.
    indirectly = {synonym.name for row in settings(Scope.TOPIC).values() if row.acted_on for synonym in row.synonyms}
    indirectly |= {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
    indirectly |= {name for limits in GROUP_LIMITS.values() for name in limits if name is not None}
    unread = [name for name in acted_on if name not in read and name.replace(".", "_") not in read]
    assert sorted(set(unread) - indirectly) == []
