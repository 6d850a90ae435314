"""Generated files are committed, so that people can read them; here they are made again and compared."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("tool", ["settings_reference", "message_stub"])
def test_a_generated_file_is_fresh(tool: str) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / f"{tool}.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr + "\nrun `make generate`"


def test_the_settings_page_has_every_setting() -> None:
    from ottla.config.scopes import Scope, settings

    page = (ROOT / "docs" / "settings.md").read_text()
    missing = [row.name for scope in Scope for row in settings(scope).values() if f"| `{row.name}` |" not in page]
    assert missing == []
