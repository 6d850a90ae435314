"""Go's clients of registries against ours: Confluent's and franz-go's, from the module proxy.

Confluent's serializers for Go need librdkafka compiled in; its client is Go alone, and so is franz-go's.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.testing import Broker, SchemaRegistry

pytestmark = pytest.mark.interop

SAID = """\
confluent first id: 1
confluent second: 2
confluent by id: true
confluent versions: [1 2]
confluent latest: true
confluent fits: false
confluent refused: error 409
confluent config: FULL
confluent reference: registered
confluent referred to: error 42206
confluent missing: error 40402
confluent deleted: [1]
confluent gone: [1]
confluent subjects: true
franz version: 1
franz text: true
franz fits: false
franz why: true
franz refused: error 409
franz protobuf: registered
franz json: registered
franz types: [AVRO PROTOBUF JSON]
franz mode: READONLY
franz read only: error 42205
franz usages: true
"""


def test_what_the_clients_are_told(tmp_path: Path) -> None:
    assert shutil.which("go"), "this needs go on PATH"
    source, program = Path(__file__).with_name("go"), tmp_path / "registry-clients"
    build = ["go", "build", "-o", str(program), "."]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(build, cwd=source, env=environment, check=True, timeout=900)
    with Broker() as broker, SchemaRegistry(broker.bootstrap) as registry:
        done = subprocess.run([program, registry.url], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == SAID, done.stderr
