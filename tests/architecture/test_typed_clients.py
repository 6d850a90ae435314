"""Programs that use the clients are checked in full by `mypy --strict`: types of results, names of arguments."""

from pathlib import Path

import pytest


def test_a_program_with_clients_is_typed() -> None:
    api = pytest.importorskip("mypy.api", reason="mypy comes with `make setup`")
    program = Path(__file__).with_name("typed_use.py")
    told, problems, status = api.run(["--strict", "--no-error-summary", str(program)])
    assert (told, problems, status) == ("", "", 0)
