"""Hints name what can be installed today."""

import importlib.metadata
import json

import pytest

from ottla.base.installing import install_command


class Installed:
    def __init__(self, told: dict[str, object] | None) -> None:
        self._told = told

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._told is None else json.dumps(self._told)


@pytest.mark.parametrize(
    ("told", "command"),
    [
        (None, "pip install 'ottla[spark]'"),
        (
            {"url": "file:///src/my%20ottla", "dir_info": {"editable": True}},
            "pip install '/src/my ottla[spark]'",
        ),
        ({"url": "https://example.com/ottla.whl", "archive_info": {}}, "pip install 'ottla[spark]'"),
    ],
    ids=["from an index", "from a checkout", "from a file of the web"],
)
def test_what_to_type(told: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(told))
    assert install_command("spark") == command


def test_a_checkout_that_was_never_installed_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nowhere)
    assert install_command("spark") == "pip install 'ottla[spark]'"
