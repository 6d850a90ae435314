"""`decode` stands for each decoder in turn: the generated one, and the compiled one where it was built."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.wire import decoding
from ottla.wire.message import Message

COMPILERS = {"generated": decoding.compile_decoder}
try:
    from ottla.wire import plans
except ImportError:  # `test_wire_compiler` fails if there was a compiler to build it with
    pass
else:
    COMPILERS["compiled"] = plans.compile_decoder


@pytest.fixture(params=COMPILERS)
def decode(request: pytest.FixtureRequest) -> Callable[[type[Message], bytes, int], Any]:
    def decode_all(message: type[Message], data: bytes, version: int) -> Any:
        value, end = COMPILERS[request.param](message, version)(data, 0)
        assert end == len(data)
        return value

    return decode_all
