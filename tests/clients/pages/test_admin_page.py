"""The examples of docs/clients/admin.md run, one after the other, against a broker; and the page names every call."""

import asyncio
import re
from pathlib import Path

import pytest

from ottla import Admin
from ottla.testing import Broker

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "clients" / "admin.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with Broker() as broker:
        Path("client.properties").write_text(f"bootstrap.servers={broker.bootstrap}\n")
        for example in EXAMPLES:
            exec(compile(example.replace("localhost:9092", broker.bootstrap), "admin.md", "exec"), names)
            if "async def describe" in example:
                asyncio.run(names["describe"]())  # type: ignore[operator]
    printed = capsys.readouterr().out
    assert "TopicAlreadyExists" in printed
    assert "topic 'nowhere': no broker knows it. Check the name, or create the topic first." in printed
    assert "segment.bytes 16777216" in printed
    assert "reports 0" in printed


def test_the_page_names_every_call() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {name for name in vars(Admin) if not name.startswith("_")} - {"from_properties"} <= named
