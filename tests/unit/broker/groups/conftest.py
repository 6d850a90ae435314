"""Every test of groups runs twice: a commit that comes again is not decoded, and must be answered the same."""

import pytest
from brokers import TestNode
from repeated_commits import ask_undecoded


@pytest.fixture(autouse=True, params=["commits are decoded", "commits are known"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "commits are known":
        monkeypatch.setattr(TestNode, "ask", ask_undecoded)
