"""Runs a connector of Debezium's in its own engine, through `DebeziumOracle.java` beside this file."""

import base64
import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.interop.apache_kafka import QUICK_START, libraries

VERSION = "3.6.0.Final"
BINLOG_VERSION = "3.5.0.Final"
"""Of the connectors for MariaDB and MySQL: a later one for MariaDB is not on Maven Central."""
WAIT_S = 240.0
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.debezium</groupId><artifactId>debezium-connector-{kind}</artifactId><version>{version}</version></dependency>
    <dependency><groupId>io.debezium</groupId><artifactId>debezium-embedded</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


class Debezium:
    """A connector of Debezium's that runs while the `with` block does. `records` are all that it gave so far."""

    def __init__(self, directory: Path, config: Mapping[str, str], offset: Mapping[str, Any] | None = None) -> None:
        self._directory = directory
        self._config = dict(config)
        self._offset = offset
        self.records: list[dict[str, Any]] = []
        self._more = threading.Condition()

    def __enter__(self) -> "Debezium":
        self._directory.mkdir(parents=True, exist_ok=True)
        settings = self._config | {"offset.storage": "DebeziumOracle$GivenOffsets", "offset.flush.interval.ms": "0"}
        if self._offset is not None:
            partition = {"server": settings["topic.prefix"]}
            given = self._directory / "offsets"
            lines = [[settings["name"], partition], self._offset]
            given.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
            settings["oracle.offsets"] = str(given)
        properties = self._directory / "engine.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        source = Path(__file__).with_name("DebeziumOracle.java")
        kind = settings["connector.class"].split(".")[3].replace("postgresql", "postgres")
        version = VERSION if kind == "postgres" else BINLOG_VERSION
        jars = libraries(version, _POM.replace("{kind}", kind), f"debezium-{kind}")
        command = ["java", *QUICK_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Duser.timezone=UTC"]
        command += ["-cp", f"{jars}/*", str(source), str(properties)]
        self._errors = (self._directory / "engine.log").open("ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._more:
                self.records.append(json.loads(line))
                self._more.notify_all()
        with self._more:
            self._more.notify_all()

    def wait_for(self, count: int, timeout_s: float = WAIT_S) -> list[dict[str, Any]]:
        """Waits until there are so many records, and gives them all."""
        deadline_s = time.monotonic() + timeout_s
        with self._more:
            while len(self.records) < count:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or self._process.poll() is not None:
                    raise AssertionError(f"{len(self.records)} of {count} records; Debezium printed:\n{self.log()}")
                self._more.wait(min(left_s, 1.0))
            return list(self.records)

    def wait_until(self, has_come: Callable[[dict[str, Any]], bool], timeout_s: float = WAIT_S) -> None:
        """Waits for a record."""
        deadline_s = time.monotonic() + timeout_s
        with self._more:
            while not any(map(has_come, self.records)):
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or self._process.poll() is not None:
                    raise AssertionError(f"{len(self.records)} records; Debezium printed:\n{self.log()}")
                self._more.wait(min(left_s, 1.0))

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def log(self) -> str:
        return (self._directory / "engine.log").read_text(errors="replace")[-6000:]

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        self._errors.close()


def unpacked(text: str | None) -> Any:
    """A key, value or header as the object that its JSON is."""
    return None if text is None else json.loads(base64.b64decode(text))
