"""Short names of Kerberos principals, as Apache Kafka makes them.

`kafka_short_names.json` has its answers (made by `tests/interop/security/kerberos_names.py`).
"""

import json
from pathlib import Path

import pytest

from ottla.config.parse import ConfigError
from ottla.security.kerberos.principals import NoShortName, ShortNames

RECORDED = json.loads(Path(__file__).with_name("kafka_short_names.json").read_text())


def ours(rules: str, principal: str) -> str:
    try:
        return f"= {ShortNames(rules.split(','), 'EAST')(principal)}"
    except ConfigError:
        return "WRONG RULE"
    except NoShortName:
        return "NO NAME"


def test_kafka_makes_the_same_names_of_the_same_principals() -> None:
    unlike = [(row["rules"], row["principal"], row["kafka"], ours(row["rules"], row["principal"])) for row in RECORDED]
    unlike = [row for row in unlike if row[2] != row[3] and not is_stricter_here(*row)]
    assert len(RECORDED) > 400
    assert unlike == []


def is_stricter_here(rules: str, principal: str, kafka: str, here: str) -> bool:
    """A rule that can only fail is refused at once; and nobody has an empty name."""
    is_rule_unused = here == "WRONG RULE" and any(
        row["kafka"] == "WRONG RULE" for row in RECORDED if row["rules"] == rules
    )
    return is_rule_unused or (kafka == "= " and here == "NO NAME")


@pytest.mark.parametrize("principal", ["a\\/b@EAST", "a\\@EAST@WEST", "@EAST", "", "a/b"])
def test_vulnerability_a_principal_with_escaped_signs_or_none_is_nobodys(principal: str) -> None:
    with pytest.raises(NoShortName):
        ShortNames(["RULE:[1:$1]", "RULE:[2:$1]", "DEFAULT"], "EAST")(principal)


def test_a_pattern_that_re2_cannot_match_in_linear_time_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules.*RE2 cannot use 'a\(\?=b\)'"):
        ShortNames(["RULE:[1:$1]s/a(?=b)/c/"], "EAST")
    with pytest.raises(ConfigError, match="RE2"):
        ShortNames([r"RULE:[1:$1]s/(a)\1/b/"], "EAST")
