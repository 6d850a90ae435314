"""How often something that goes on is told. (What clients and nodes tell has more: `test_client_log`.)"""

from ottla.base.pacing import Pacing, and_more


def told(pacing: Pacing, about: str, times: "range") -> list[int]:
    return [second for second in times if pacing.due(about, second) is not None]


def test_a_line_at_once_and_then_after_pauses_that_grow_to_a_minute() -> None:
    assert told(Pacing(), "disk", range(200)) == [0, 2, 6, 14, 30, 62, 122, 182]


def test_each_thing_has_a_pace_of_its_own() -> None:
    pacing = Pacing()
    told(pacing, "disk", range(100))
    assert pacing.due("network", 100) == 0


def test_what_was_left_out_is_counted() -> None:
    pacing = Pacing()
    assert [pacing.due("disk", second / 2) for second in range(5)] == [0, None, None, None, 3]
    assert and_more(3) == " (3 more like it since the last line)"
    assert and_more(0) == ""
