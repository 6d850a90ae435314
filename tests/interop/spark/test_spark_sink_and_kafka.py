"""Spark's source and sink on Apache Kafka: what they read, and the failure table (docs/decisions/0012).

Its coordinator answers as ours does.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType
from tests.interop.apache_kafka import ApacheKafka

pytestmark = pytest.mark.interop
SPARK = Path(__file__).parents[2] / "spark"
TABLE = "test_sink_failures.py", "test_single_transaction.py"
SOURCE = "test_batch_source.py", "test_stream_source.py"
OF_OUR_BROKER = "broker_is_killed or answers_of_the_coordinator or batch_write"
"""What asks a broker for faults."""


@pytest.mark.parametrize("level", [1, 2], ids="transaction.version={}".format)
def test_every_row_of_the_failure_table_holds_on_apache_kafka(tmp_path: Path, level: int) -> None:
    with ApacheKafka(tmp_path) as kafka:
        if level == 1:
            with ottla.Admin(bootstrap_servers=kafka.bootstrap) as admin:
                older = FeatureUpdate(level, UpgradeType.SAFE_DOWNGRADE)
                admin.update_features({"transaction.version": older}).raise_first()
        run_on(kafka, TABLE, "-k", f"not ({OF_OUR_BROKER})")


def test_batches_and_streams_are_read_from_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka:
        run_on(kafka, SOURCE)


def run_on(kafka: ApacheKafka, files: tuple[str, ...], *options: str) -> None:
    """Our own tests, with another broker than ours."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *(str(SPARK / name) for name in files), *options],
        env={**os.environ, "OTTLA_BROKER": kafka.bootstrap},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
