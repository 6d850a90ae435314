"""Bytes that are only lent: what poison does, where it reaches, and what a type checker says to who keeps them."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base import lent
from ottla.testing import Broker
from ottla.wire.exchange.frames import LEAST_BYTES, SpareBuffers

POISON = 0xDB


def test_what_is_given_back_is_overwritten_and_no_more() -> None:
    buffer = bytearray(b"abcdef")
    lent.give_back(buffer, 4)
    assert buffer == bytes([POISON] * 4) + b"ef"


def test_what_is_kept_is_a_copy() -> None:
    buffer = bytearray(b"abc")
    kept = lent.keep(lent.lend(buffer)[1:])
    lent.give_back(buffer, 3)
    assert kept == b"bc"


@pytest.mark.parametrize(("value", "is_poisoned"), [("1", True), ("", False)])
def test_a_process_poisons_if_its_environment_says_so(value: str, is_poisoned: bool) -> None:
    program = "from ottla.base import lent; b = bytearray(1); lent.give_back(b, 1); print(b[0])"
    done = subprocess.run([sys.executable, "-c", program], env={"OTTLA_POISON": value}, capture_output=True, text=True)
    assert done.stdout.strip() == (str(POISON) if is_poisoned else "0")


@pytest.mark.slow
def test_nodes_that_tests_start_are_poisoned() -> None:
    with Broker() as broker:
        environment = Path(f"/proc/{broker.pid}/environ")
        if not environment.exists():
            pytest.skip("only Linux shows the environment of a process")
        assert b"OTTLA_POISON=1" in environment.read_bytes().split(b"\0")


def test_a_buffer_that_waits_for_its_next_user_is_poisoned() -> None:
    buffer = bytearray(LEAST_BYTES + 1)
    assert SpareBuffers(2 * LEAST_BYTES).give(buffer)
    assert set(buffer) == {POISON}


KEEPER = """
from ottla.base.lent import Buffer, Lent, Seen, keep


class Keeper:
    kept: Buffer

    def take(self, frame: Lent) -> None:
        self.kept = {kept}


def look(data: Seen) -> int:
    return len(data)


def hand_on(frame: Lent) -> int:
    return look(frame)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "is_fine"), [("keep(frame)", True), ("frame", False), ("frame[4:]", False)])
def test_a_type_checker_refuses_to_store_what_is_lent(tmp_path: Path, kept: str, is_fine: bool) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy comes with `make setup`")
    program = tmp_path / "keeper.py"
    program.write_text(KEEPER.format(kept=kept))
    told, _, status = api.run(["--strict", "--no-error-summary", str(program)])
    assert (status == 0) is is_fine, told
    assert is_fine or 'expression has type "Lent"' in told
