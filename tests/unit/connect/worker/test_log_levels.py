"""Levels of loggers, as `/admin/loggers` has them."""

import logging

from ottla.connect.worker.log_levels import LogLevels


def test_a_level_is_for_a_logger_and_all_below_it() -> None:
    above, below, aside = (logging.getLogger(f"levels.{name}") for name in ("a", "a.b", "ab"))
    below.setLevel(logging.ERROR)
    levels = LogLevels()
    assert levels.set("levels.a", "DEBUG", 77) == ["levels.a", "levels.a.b"]
    assert (above.getEffectiveLevel(), below.getEffectiveLevel()) == (logging.DEBUG, logging.DEBUG)
    assert aside.getEffectiveLevel() != logging.DEBUG
    assert levels.one("levels.a.b") == {"level": "DEBUG", "last_modified": 77}
    assert levels.set("levels.a", "DEBUG", 78) == [], "nothing is changed"
    assert levels.all()["levels.a"] == {"level": "DEBUG", "last_modified": 77}


def test_a_logger_that_nobody_has_is_none_until_it_is_set() -> None:
    levels = LogLevels()
    assert levels.one("levels.none") is None
    assert levels.set("levels.none", "OFF", 1) == ["levels.none"]
    assert levels.one("levels.none") == {"level": "OFF", "last_modified": 1}
    assert levels.one("root") is not None
