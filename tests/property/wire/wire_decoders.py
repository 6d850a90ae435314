"""The decoders there are: the generated one always, the compiled one where it was built. All pass the same tests."""

from collections.abc import Callable

from ottla.wire import decoding
from ottla.wire.message import Decoder, Message

DECODERS: dict[str, Callable[[type[Message], int], Decoder]] = {"generated": decoding.compile_decoder}

try:
    from ottla.wire import plans
except ImportError:  # `test_wire_compiler` fails if there was a compiler to build it with
    pass
else:
    DECODERS["compiled"] = plans.compile_decoder
