"""The failure table of the Spark sink (docs/decisions/0012) on Apache Kafka: its coordinator answers as ours does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka

pytestmark = pytest.mark.interop
TABLE = Path(__file__).parents[1] / "spark" / "test_sink_failures.py"
OF_OUR_BROKER = "broker_is_killed or answers_of_the_coordinator"
"""What asks a broker for faults."""


def test_every_row_of_the_failure_table_holds_on_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", str(TABLE), "-k", f"not ({OF_OUR_BROKER})"],
            env={**os.environ, "OTTLA_BROKER": kafka.bootstrap},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert ran.returncode == 0, ran.stdout[-4000:]
