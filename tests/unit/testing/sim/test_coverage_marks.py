"""Marks are set by what they watch, and leave the product as it was."""

import pytest

from ottla.testing.sim.marks import MARKS, watching


def test_every_mark_watches_something_that_is_there() -> None:
    for name, (owner, method, _) in MARKS.items():
        assert callable(vars(owner).get(method)), f"{name}: {owner} has no {method}"


def test_the_product_is_as_before_when_nobody_watches() -> None:
    before = {name: vars(owner)[method] for name, (owner, method, _) in MARKS.items()}
    with watching(set()):
        assert all(vars(owner)[method] is not before[name] for name, (owner, method, _) in MARKS.items())
    assert before == {name: vars(owner)[method] for name, (owner, method, _) in MARKS.items()}


def test_a_mark_is_set_by_the_call_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        def work(self, result: bool) -> bool:
            return result

    monkeypatch.setitem(MARKS, "it worked", (Part, "work", lambda arguments, result: result))
    reached: set[str] = set()
    with watching(reached):
        assert Part().work(False) is False
        assert "it worked" not in reached
        assert Part().work(True) is True
    assert reached == {"it worked"}
