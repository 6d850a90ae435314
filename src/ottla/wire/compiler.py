"""Ties a message class to its codecs, which are generated and compiled version by version when first used."""

from collections.abc import Callable
from typing import TypeVar

from ottla.wire.message import Message

try:
    from ottla.wire.plans import compile_decoder, compile_encoder
except ImportError:  # there was no C compiler when the package was installed
    from ottla.wire.decoding import compile_decoder
    from ottla.wire.encoding import compile_encoder

__all__ = ["attach_codecs"]

Codec = TypeVar("Codec")


class _CompiledOnUse(dict[int, Codec]):
    """Version to codec; `KeyError` for a version that the message does not have."""

    def __init__(self, message: type[Message], compile_version: Callable[[type[Message], int], Codec]) -> None:
        self._message, self._compile = message, compile_version

    def __missing__(self, version: int) -> Codec:
        if version not in self._message._schema.versions:
            raise KeyError(version)
        codec = self[version] = self._compile(self._message, version)
        return codec


def attach_codecs(message: type[Message]) -> None:
    message._decoders = _CompiledOnUse(message, compile_decoder)
    message._encoders = _CompiledOnUse(message, compile_encoder)
