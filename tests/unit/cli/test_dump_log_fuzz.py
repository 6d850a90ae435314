"""Whatever has happened to a file, dump-log prints what it can, says what is wrong, and ends."""

import shutil
from pathlib import Path
from random import Random

import pytest

from ottla.cli.dump_log import main

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
PARTITIONS = [
    "clean/transactions-0",
    "clean/compacted-0",
    "clean/__consumer_offsets-0",
    "clean/__cluster_metadata-0",
    "clean/snappy-0",
    "clean/lz4-0",
    "killed/idempotent-0",
    "legacy/magic-1-gzip-0",
]
EXTREMES = [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", bytes(4)]


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_is_no_surprise(
    partition: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(f"{partition} {seed}")
    copy = Path(shutil.copytree(GOLDEN / partition, tmp_path / Path(partition).name))
    for damaged in sorted(copy.iterdir()):
        damaged.write_bytes(damage(damaged.read_bytes(), random))

    assert main(["--records", str(copy)]) in (0, 1)
    assert main(["--print-data-log", "--files", ",".join(map(str, sorted(copy.iterdir())))]) in (0, 1)
    complaints = capsys.readouterr().err
    assert "Traceback" not in complaints


def damage(content: bytes, random: Random) -> bytes:
    """Bytes changed, lengths made extreme, pieces cut out or put in."""
    damaged = bytearray(content)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(damaged) + 1)
        match random.randrange(4):
            case 0:
                damaged[at : at + 1] = random.randbytes(1)
            case 1:
                damaged[at : at + 4] = random.choice(EXTREMES)
            case 2:
                del damaged[at : at + random.randint(1, 9)]
            case _:
                damaged[at:at] = random.randbytes(random.randint(1, 9))
    return bytes(damaged)
