"""What others say of schemas: Apache Avro, Confluent's client and serializers, and Square's Wire, from Maven Central.

Each is a small program in Java beside this file, which reads questions and writes answers, a JSON object a line.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.interop.apache_kafka import QUICK_START, libraries

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    {dependencies}
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>2.0.13</version></dependency>
  </dependencies>
</project>
"""


def _pom(*dependencies: str) -> str:
    made = (
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *one.split(":")
        )
        for one in dependencies
    )
    return _POM.format(dependencies="\n    ".join(made))


_AVRO = _pom("org.apache.avro:avro:1.12.2")
_WIRE = _pom("com.squareup.wire:wire-schema-jvm:6.4.0", "com.fasterxml.jackson.core:jackson-databind:2.18.2")

_JARS = {
    "AvroOracle": ("apache-avro", "1.12.2", _AVRO),
    "AvroData": ("apache-avro", "1.12.2", _AVRO),
    "WireOracle": ("wire-schema", "6.4.0", _WIRE),
}
_SHADED = {
    # Confluent's client 7.9.5 is in there, and its provider 5.5.3: the newest that Maven Central has, inside others.
    "ConfluentAvro": "pinot-confluent-avro:1.5.0",
    "ConfluentProtobuf": "pinot-protobuf:0.12.0",
}


def _directory(program: str) -> Path:
    """Where the jars for a program are, fetched with Maven the first time."""
    if program in _JARS:
        name, version, pom = _JARS[program]
        return libraries(version, pom, name)
    return shaded(_SHADED[program])


def shaded(artifact: str) -> Path:
    """Where such a jar of Apache Pinot's is (`name:version`). What it is made of names repositories that need not be
    there: it is fetched alone."""
    name, version = artifact.split(":")
    found = _local_repository() / "org/apache/pinot" / name / version
    if not list(found.glob("*-shaded.jar")):
        full = f"-Dartifact=org.apache.pinot:{artifact}:jar:shaded"
        get = ["mvn", "-q", "-B", "dependency:get", full, "-Dtransitive=false"]
        subprocess.run(get, check=True, timeout=900)
    return found


@cache
def _local_repository() -> Path:
    ask = ["mvn", "-q", "-B", "help:evaluate", "-Dexpression=settings.localRepository", "-DforceStdout"]
    said = subprocess.run(ask, check=True, capture_output=True, text=True, timeout=900).stdout
    return Path(re.sub(r"\x1b\[[0-9;]*m", "", said).strip())  # Maven ends its colours even where it has none


def asked(program: str, questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a program answers to each question."""
    source = Path(__file__).with_name(f"{program}.java")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    command = ["java", *QUICK_START, quiet, "-cp", f"{_directory(program)}/*", str(source)]
    lines = "\n".join(json.dumps(question) for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
