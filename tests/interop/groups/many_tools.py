"""Kafka's command-line tools in one Java process: `ManyTools.java`, which is compiled when it starts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.interop.apache_kafka import MAIN_CLASSES, QUICK_START, libraries

END_TIMEOUT_S = 30


class Printed(NamedTuple):
    exit_code: int
    text: str


class ManyTools:
    """One command at a time."""

    def __enter__(self) -> ManyTools:
        source = Path(__file__).with_name("ManyTools.java")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        command = ["java", *QUICK_START, quiet, "-cp", f"{libraries()}/*", str(source)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)

    def __call__(self, name: str, *arguments: str) -> Printed:
        """The tool by the name of its script. Every tool has a time limit of its own for what it asks of a node."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join([MAIN_CLASSES[name], *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        code, size = self._process.stdout.readline().split()
        return Printed(int(code), self._process.stdout.read(int(size)).decode())
