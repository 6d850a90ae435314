"""A writer is killed in the middle, again and again, as `kill -9` does: every record is there once, row for row."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.unit.connect.lakes.given_lakes import Lake
from tests.unit.connect.lakes.writer_process import row, started, write
from tests.unit.connect.s3_server import S3Server

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

ROOT = Path(__file__).parents[4]
END = 200


def killed(config: dict[str, str], allowed: Path, where: str | None, chance: Random) -> None:
    """Runs a writer until it dies by itself, or is killed a moment after one of its first puts."""
    argument = json.dumps([config, str(allowed), END, where])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.connect.lakes.writer_process", argument],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        if where is None:
            for _ in range(chance.randrange(1, 4)):
                assert process.stdout.readline().startswith("put"), "the writer ended by itself"
            time.sleep(chance.random() * 0.05)  # a moment within the next put, whichever it is
            process.send_signal(signal.SIGKILL)
        else:
            process.stdout.read()
    assert process.wait() == (9 if where else -signal.SIGKILL)


def every_record_is_there_once(
    config: dict[str, str], allowed: Path, deaths: list[str | None], rows: Callable[[], list[Any]], seed: int
) -> None:
    chance = Random(seed)
    for where in deaths:
        killed(config, allowed, where, chance)
        _, offset = started(config, str(allowed))
        assert rows() == [(one["id"], one["note"]) for one in map(row, range(offset))], f"seed {seed}, after {where}"
    write(*started(config, str(allowed)), END)
    assert rows() == [(one["id"], one["note"]) for one in map(row, range(END))], f"seed {seed}"


DEATHS: dict[str, list[str | None]] = {"Delta": [None, None], "Iceberg": ["before", "after"]}


@pytest.mark.slow
@pytest.mark.parametrize("format", ["Delta", "Iceberg"])
def test_a_lake_has_every_record_once(format: str, tmp_path: Path) -> None:
    lake = Lake(format, tmp_path)
    every_record_is_there_once(lake.config(upserts=False), tmp_path, DEATHS[format], lambda: in_order(lake), 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("format", ["Delta", "Iceberg"])
def test_a_lake_has_every_record_once_whenever_it_is_killed(format: str, tmp_path: Path, seed: int) -> None:
    lake = Lake(format, tmp_path)
    every_record_is_there_once(lake.config(upserts=False), tmp_path, [None] * 3, lambda: in_order(lake), seed)


def in_order(lake: Lake) -> list[Any]:
    table = lake.table()
    return sorted(zip(table.column("id").to_pylist(), table.column("note").to_pylist(), strict=True))


@pytest.mark.slow
def test_files_on_s3_have_every_record_once(s3: S3Server, tmp_path: Path) -> None:
    s3.bucket("killed")
    config = {"connector.class": "FilesSink", "directory": "s3://killed/out", "format": "json", **s3.config}

    def rows() -> list[Any]:
        found: list[Any] = []
        for name in s3.names("killed/out/_manifest"):
            for file in json.loads(s3.read(f"killed/out/_manifest/{name}"))["files"]:
                found += [json.loads(line) for line in s3.read(f"killed/out/{file}").splitlines()]
        return sorted((one["id"], one["note"]) for one in found)

    # The second manifest is that of the first rows: the first is the worker's own.
    every_record_is_there_once(config, tmp_path, ["before", "after", None], rows, 1)
    files = [name for name in s3.names("killed/out") if not name.startswith("_manifest")]
    assert sum(len(s3.read(f"killed/out/{name}").splitlines()) for name in files) == END
