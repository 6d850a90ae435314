"""Both twins of the work per record take every test that is about it."""

from types import ModuleType

import pytest

from ottla.client.producer import _slow_append


@pytest.fixture(params=["compiled", "pure"])
def twin(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "pure":
        return _slow_append
    return pytest.importorskip("ottla.client.producer._fast_append")
