"""The failure table of the Spark sink (docs/decisions/0012) on Apache Kafka: its coordinator answers as ours does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka

import ottla
from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType

pytestmark = pytest.mark.interop
TABLE = Path(__file__).parents[1] / "spark" / "test_sink_failures.py"
OF_OUR_BROKER = "broker_is_killed or answers_of_the_coordinator"
"""What asks a broker for faults."""


@pytest.mark.parametrize("level", [1, 2], ids="transaction.version={}".format)
def test_every_row_of_the_failure_table_holds_on_apache_kafka(tmp_path: Path, level: int) -> None:
    with ApacheKafka(tmp_path) as kafka:
        if level == 1:
            with ottla.Admin(bootstrap_servers=kafka.bootstrap) as admin:
                older = FeatureUpdate(level, UpgradeType.SAFE_DOWNGRADE)
                admin.update_features({"transaction.version": older}).raise_first()
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", str(TABLE), "-k", f"not ({OF_OUR_BROKER})"],
            env={**os.environ, "OTTLA_BROKER": kafka.bootstrap},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert ran.returncode == 0, ran.stdout[-4000:]
