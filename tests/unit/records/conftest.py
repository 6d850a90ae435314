"""Both kernels take every test that is about a kernel."""

import pytest

from ottla.records import _slow

try:
    from ottla.records import _fast
except ImportError:
    _fast = None


@pytest.fixture(params=["compiled", "pure"])
def kernel(request):
    if request.param == "pure":
        return _slow
    if _fast is None:
        pytest.skip("this installation has no compiled kernel")
    return _fast


def fields(record):
    return record.offset, record.timestamp, record.key, record.value, record.headers
