"""How far a run is, told through a file."""

from pathlib import Path

from ottla.connect.engine.progress import Heard, Told
from ottla.connect.engine.run import Run


def test_a_directory_that_was_cleared_stops_nothing_and_it_is_told_when_it_is_back(tmp_path: Path) -> None:
    run = Run("id", "shop", "source", {}, {}, str(tmp_path / "run"))
    told = Told(run)
    told.wrote(3, 0.1)
    told.is_at_end = True
    told.tell()
    assert Heard(run).now() is None
    (tmp_path / "run").mkdir()
    told.tell()
    found = Heard(run).now()
    assert found is not None
    assert (found.written, found.is_at_end) == (3, True)
