"""Every test of groups runs twice: commits go through compiled code, where there is any, or through Python."""

import pytest

from tests.unit.broker.groups.commits_in_python import commit_in_python


@pytest.fixture(autouse=True, params=["compiled", "in Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        commit_in_python(monkeypatch)
