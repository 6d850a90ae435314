"""Kafka's command-line tools in one Java process: `KafkasTools.java`, which is compiled when it starts."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

from tests.interop.apache_kafka import MAIN_CLASSES, QUICK_START, libraries

END_TIMEOUT_S = 30


class Printed(NamedTuple):
    exit_code: int
    out: str
    err: str


class KafkasTools:
    """One command at a time.

    A tool on argparse4j ends the process itself when its command line is wrong or asks for help, and the console
    producer sends what is left when its process ends: such a command is run `alone`, in a process of its own.
    """

    def __enter__(self) -> KafkasTools:
        source = Path(__file__).with_name("KafkasTools.java")
        self._process = subprocess.Popen(
            [*_java(), str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)

    def __call__(self, name: str, *arguments: str, input: str = "") -> Printed:
        """The tool by the name of its script. Every tool has a time limit of its own for what it asks of a node."""
        to_java, from_java = self._process.stdin, self._process.stdout
        assert to_java is not None
        assert from_java is not None
        words = [MAIN_CLASSES[name], *arguments]
        to_java.write(struct.pack(">i", len(words)))
        for text in (*words, input):
            encoded = text.encode()
            to_java.write(struct.pack(">i", len(encoded)) + encoded)
        to_java.flush()
        return Printed(_number(from_java), _text(from_java), _text(from_java))

    def alone(self, name: str, *arguments: str, input: str = "") -> Printed:
        command = [*_java(), MAIN_CLASSES[name], *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120)
        return Printed(done.returncode, done.stdout, done.stderr)

    def begin(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """A tool that runs until it is stopped, which is for the caller."""
        return subprocess.Popen([*_java(), MAIN_CLASSES[name], *arguments], stdout=subprocess.PIPE, text=True)


def _java() -> list[str]:
    # Kafka's own log lines are not what its tools print.
    return ["java", *QUICK_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{libraries()}/*"]


def _number(source: IO[bytes]) -> int:
    (number,) = struct.unpack(">i", source.read(4))
    return int(number)


def _text(source: IO[bytes]) -> str:
    return source.read(_number(source)).decode()
