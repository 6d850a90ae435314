"""Every message and record of the protocol as a class, made when first asked for (PEP 562).

    from ottla.wire.messages import ProduceRequest

    request = ProduceRequest(acks=-1, timeout_ms=30_000)
    request.topic_data.append(ProduceRequest.TopicProduceData(name="clicks"))

Type checkers read `messages.pyi`, which `tools/message_stub.py` generates from the same facts.
"""

from typing import Any

from ottla.wire.compiler import attach_codecs
from ottla.wire.message import build_class
from ottla.wire.schema import message_names, message_schema


def __getattr__(name: str) -> Any:
    try:
        schema = message_schema(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    message = build_class(schema, __name__)
    attach_codecs(message)
    globals()[name] = message
    return message


def __dir__() -> list[str]:
    return sorted(message_names())
