"""What `dump-log --files` prints of the golden directories is what Apache Kafka's own tool printed of them.

Every difference is named here; `ottla.cli.dump_log` lists them for users.
"""

import re
from pathlib import Path

import pytest

from ottla.cli.dump_log import main

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
ORACLES = sorted(path for path in GOLDEN.glob("*.dump/*.txt") if not path.name.endswith(".err.txt"))

# As make_golden.py asked Kafka's tool.
OPTIONS = {
    "__consumer_offsets-0": "--offsets-decoder",
    "__transaction_state-0": "--transaction-log-decoder",
    "__share_group_state-0": "--share-group-state-decoder",
    "__cluster_metadata-0": "--cluster-metadata-decoder",
    "bootstrap.checkpoint": "--cluster-metadata-decoder",
    "large-0": "--deep-iteration",
}
CHECKSUM_OF_A_RECORD = re.compile(r"(^\| .*) isValid: true crc: \d+", re.MULTILINE)
HEADING = re.compile(r"^(?=\S.* in :?)", re.MULTILINE)


def test_there_is_something_to_compare_with() -> None:
    assert len(ORACLES) > 90


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda path: f"{path.parent.stem}/{path.stem}")
def test_dump_log_prints_what_kafka_prints(
    oracle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_out = oracle.read_text()
    kafka_err = oracle.with_suffix(".err.txt")
    complaints = kafka_err.read_text() if kafka_err.exists() else ""
    directory = oracle.parent.with_suffix("")
    monkeypatch.chdir(directory)

    status = main([OPTIONS.get(oracle.stem, "--print-data-log"), "--files", ",".join(files_of(oracle, directory))])

    printed = capsys.readouterr()
    if complaints.startswith("Exception"):
        # An index of zeros only over an empty log: Kafka's tool ends here, ours finds a mismatch and goes on.
        assert "NoSuchElementException" in complaints
        assert printed.out.startswith(kafka_out)
        assert "log offset: -1" in printed.err
    else:
        assert without_inner_checksums(printed.out) == without_inner_checksums(kafka_out)
        ours = printed.err.replace(f"{directory}/", "")
        assert sorted(HEADING.split(ours)) == sorted(HEADING.split(complaints))
    assert status == 0


def files_of(oracle: Path, directory: Path) -> list[str]:
    """The files of a partition that Kafka's tool knows, in order."""
    path = directory / oracle.stem
    if path.is_file():
        return [path.name]
    known = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}
    return [f"{path.name}/{file.name}" for file in sorted(path.iterdir()) if file.suffix in known]


def without_inner_checksums(text: str) -> str:
    """Of records in compressed entries of magic 0 and 1, we do not print the checksums they have of their own."""
    return CHECKSUM_OF_A_RECORD.sub(r"\1", text)
