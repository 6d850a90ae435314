"""Codecs come to be when they are first used, from the compiled decoder where there is one."""

import shutil
import subprocess
import sys
from pathlib import Path

import ottla
from ottla.wire import compiler, decoding, encoding
from ottla.wire.messages import ApiVersionsRequest

SOURCES = Path(ottla.__file__).parents[1]


def run(program: str) -> str:
    """In a fresh interpreter, without what site-packages adds to every start."""
    command = [sys.executable, "-S", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCES)}).stdout


def test_the_package_alone_imports_next_to_nothing() -> None:
    loaded = run("import sys; old = set(sys.modules); import ottla.wire; print(*set(sys.modules) - old)").split()
    assert set(loaded) == {"ottla", "ottla.wire"}


def test_using_it_does_not_import_what_is_slow() -> None:
    program = "import sys; from ottla.wire import decode_request; print(*sys.modules)"
    slow = {"dataclasses", "inspect", "asyncio", "socket", "ssl", "logging", "importlib.resources", "pathlib"}
    assert not slow & set(run(program).split())


def test_a_version_is_compiled_when_it_is_first_used() -> None:
    program = (
        "from ottla.wire.messages import BrokerHeartbeatRequest\n"
        "encoders = BrokerHeartbeatRequest._encoders\n"
        "print(list(encoders), encoders[1] is encoders[1], list(encoders))"
    )
    assert run(program) == "[] True [1]\n"


def test_the_compiled_decoder_is_there_if_a_compiler_was() -> None:
    compiled = compiler.compile_decoder is not decoding.compile_decoder
    assert compiled or shutil.which("cc") is None, "not built: see setup.py, and run `make setup`"


def test_without_the_compiled_decoder_the_generated_one_is_used() -> None:
    program = (
        "import sys; sys.modules['ottla.wire._native'] = None\n"
        "from ottla.wire import compiler, decode, decoding, messages\n"
        "assert compiler.compile_decoder is decoding.compile_decoder\n"
        "print(decode(messages.ApiVersionsRequest, bytes.fromhex('0261026200'), 3))"
    )
    expected = "ApiVersionsRequest(client_software_name='a', client_software_version='b')"
    assert run(program).strip() == expected


def test_generated_code_can_be_read() -> None:
    assert "message.client_software_name = text.decode()" in decoding.decoder_source(ApiVersionsRequest, 3)
    assert "def encode(message, pieces, payloads):" in encoding.encoder_source(ApiVersionsRequest, 3)
