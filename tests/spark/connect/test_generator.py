"""The generator. Here because it needs numpy, which comes with Spark."""

from pathlib import Path

from tests.unit.connect.connectors.sources import SourceRun


def test_a_generators_records_depend_on_their_number_alone(tmp_path: Path) -> None:
    def run() -> SourceRun:
        return SourceRun(
            tmp_path,
            connector__class="ottla.connect.GeneratorSourceConnector",
            topic="t",
            count="1000",
            text__bytes="30",
            seed="7",
        )

    whole, pieces = run(), run()
    at_once = whole.take(whole.started())
    assert [value["id"] for value in at_once] == list(range(1000))
    assert {len(value["text"]) for value in at_once} == {30}
    assert len({value["text"] for value in at_once}) == 1000
    pieces.max_bytes = 94 * 100
    found = []
    for _ in range(12):
        found += pieces.take(pieces.started())  # every poll is another start's
    assert found == at_once
