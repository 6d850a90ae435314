"""Which rules a filter finds (KIP-290)."""

from random import Random

import pytest

from ottla.security.acls.bindings import AclBinding
from ottla.security.acls.filters import AclFilter, RuleSearch
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType

LITERAL = AclBinding(
    AclResource.TOPIC, "orders", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermission.ALLOW
)
PREFIXED = LITERAL._replace(resource_name="ord", pattern_type=PatternType.PREFIXED)
EVERY = LITERAL._replace(resource_name="*")
OTHER = LITERAL._replace(resource_name="others")
ALL = AclFilter(AclResource.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermission.ANY)


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        (PatternType.ANY, None, [LITERAL, PREFIXED, EVERY, OTHER]),
        (PatternType.LITERAL, None, [LITERAL, EVERY, OTHER]),
        (PatternType.ANY, "orders", [LITERAL]),
        (PatternType.MATCH, "orders", [LITERAL, PREFIXED, EVERY]),
        (PatternType.MATCH, "ord", [PREFIXED, EVERY]),
        (PatternType.PREFIXED, "ord", [PREFIXED]),
        (PatternType.LITERAL, "*", [EVERY]),
        (PatternType.MATCH, None, [LITERAL, PREFIXED, EVERY, OTHER]),
    ],
)
def test_names_and_patterns(pattern: PatternType, name: str | None, found: list[AclBinding]) -> None:
    wanted = ALL._replace(pattern_type=pattern, resource_name=name)
    assert [rule for rule in (LITERAL, PREFIXED, EVERY, OTHER) if wanted.matches(rule)] == found


@pytest.mark.parametrize(
    "other",
    [
        {"resource_type": AclResource.GROUP},
        {"principal": "User:b"},
        {"host": "10.0.0.1"},
        {"operation": AclOperation.ALL},
        {"permission_type": AclPermission.DENY},
    ],
)
def test_each_field_narrows(other: dict[str, object]) -> None:
    assert ALL.matches(LITERAL)
    assert AclFilter(*LITERAL).matches(LITERAL)
    assert not ALL._replace(**other).matches(LITERAL)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_search_among_many_rules_finds_what_a_look_at_each_of_them_finds(seed: int) -> None:
    chance = Random(seed)
    names, hosts = ["*", "o", "or", "ord", "orders", "orders-1", "x"], ["*", "10.0.0.1"]
    principals = [f"User:{number}" for number in range(5)]
    rules = {
        number: AclBinding(
            chance.choice([AclResource.TOPIC, AclResource.GROUP]),
            chance.choice(names),
            chance.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            chance.choice(principals),
            chance.choice(hosts),
            chance.choice([AclOperation.READ, AclOperation.WRITE]),
            chance.choice([AclPermission.ALLOW, AclPermission.DENY]),
        )
        for number in range(200)
    }
    search = RuleSearch(rules)
    for _ in range(300):
        wanted = AclFilter(
            chance.choice([AclResource.ANY, AclResource.TOPIC]),
            chance.choice([None, "", "order", *names]),
            chance.choice([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
            chance.choice([None, "User:nobody", *principals]),
            chance.choice([None, "10.0.0.2", *hosts]),
            chance.choice([AclOperation.ANY, AclOperation.READ]),
            chance.choice([AclPermission.ANY, AclPermission.DENY]),
        )
        assert search.find(wanted) == {number: rule for number, rule in rules.items() if wanted.matches(rule)}
