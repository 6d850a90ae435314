"""Commits without compiled code, as where there is no C compiler."""

import pytest

from ottla.broker.coordination import coordinated_partition
from ottla.broker.coordination.gathering import gather_nothing
from ottla.broker.groups import offset_commit
from ottla.machines.group import commits


def commit_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinated_partition, "gather", gather_nothing)
    monkeypatch.setattr(offset_commit, "name_all", commits.name_all_in_python)
    monkeypatch.setattr(commits, "encode", commits.encode_in_python)
    monkeypatch.setattr(commits, "replay", commits.replay_in_python)
