"""The rules of `ottla dashboards`, each in Prometheus' own unit tests (`promtool test rules`): a story in which it
fires, with its words, and one that looks much the same and in which it must not.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.cli.dashboards.alerts import ALERTS
from ottla.cli.dashboards.dashboards_command import all_files
from tests.interop.monitoring.prometheus import promtool

pytestmark = pytest.mark.interop

RUNBOOK = "https://example.com/runbook"
DAY_S = 86_400
_LAG = "kafka_consumergroup_lag"
_LATE = "ottla_consumergroup_lag_seconds"
_LABELS = 'consumergroup="readers",topic="orders",partition="0"'
_FREE, _SIZE = (
    'ottla_disk_free_bytes{directory="/data",instance="a"}',
    'ottla_disk_size_bytes{directory="/data",instance="a"}',
)
_LATENCY = "ottla_disk_latency_seconds_bucket"
_UNDER = "kafka_server_replicamanager_"


class Story(NamedTuple):
    """Series with their values, one a minute, as promtool writes them; and the minute of the question."""

    alert: str
    fires: dict[str, str]
    minute: int
    labels: dict[str, str]
    summary: str
    silent: dict[str, str]


STORIES = [
    Story(
        "OttlaNodeDown",
        {'up{job="ottla",instance="a"}': "1 0 0 0", 'up{job="ottla",instance="b"}': "1x3"},
        2,
        {"job": "ottla", "instance": "a"},
        "Node a does not answer.",
        {'up{job="ottla",instance="a"}': "1 0 1 0", 'up{job="other",instance="a"}': "0x5"},
    ),
    Story(
        "OttlaNoActiveController",
        {'kafka_controller_kafkacontroller_activecontrollercount{instance="a"}': "1 0 0 0"},
        2,
        {},
        "Active controllers: 0; there must be one.",
        {
            'kafka_controller_kafkacontroller_activecontrollercount{instance="a"}': "1 stale",
            'kafka_controller_kafkacontroller_activecontrollercount{instance="b"}': "0 1 1 1",
        },
    ),
    Story(
        "OttlaOfflinePartitions",
        {f'kafka_controller_kafkacontroller_offlinepartitionscount{{instance="{one}"}}': "0 4 4 4" for one in "abc"},
        2,
        {},
        "Partitions without a leader: 4.",
        {'kafka_controller_kafkacontroller_offlinepartitionscount{instance="a"}': "0 4 0 0"},
    ),
    Story(
        "OttlaUnderMinIsr",
        {
            _UNDER + 'underminisrpartitioncount{instance="a"}': "0 1x4",
            _UNDER + 'underminisrpartitioncount{instance="b"}': "2x4",
        },
        2,
        {},
        "Partitions with too few replicas in sync: 3. Writes with acks=all fail.",
        {_UNDER + 'underminisrpartitioncount{instance="a"}': "0 1 0 1"},
    ),
    Story(
        "OttlaUnderReplicated",
        {_UNDER + 'underreplicatedpartitions{instance="a"}': "0 7x20"},
        11,
        {},
        "Partitions with a replica that is not in sync: 7.",
        {_UNDER + 'underreplicatedpartitions{instance="a"}': "7x9 0 7x9"},
    ),
    Story(
        "OttlaUncleanElection",
        {'kafka_controller_controllerstats_uncleanleaderelections_total{instance="a"}': "0 0 1 1 1"},
        4,
        {"instance": "a"},
        "A leader was elected from outside the ISR: acknowledged records may be lost.",
        {'kafka_controller_controllerstats_uncleanleaderelections_total{instance="a"}': "3x30"},
    ),
    Story(
        "OttlaLogDirectoryOffline",
        {'kafka_log_logmanager_offlinelogdirectorycount{instance="a"}': "0 1 1 1"},
        2,
        {"instance": "a"},
        "Failed log directories of a: 1.",
        {'kafka_log_logmanager_offlinelogdirectorycount{instance="a"}': "0x5"},
    ),
    Story(
        "OttlaDiskFull",
        {_FREE: "9x9", _SIZE: "100x9"},
        6,
        {"instance": "a", "directory": "/data"},
        "a /data: 9% free.",
        {_FREE: "11x9", _SIZE: "100x9"},
    ),
    Story(
        "OttlaDiskFillsUp",
        {_FREE: f"{10**9}-{10**6}x400", _SIZE: f"{10**10}x400"},
        390,
        {"instance": "a", "directory": "/data"},
        "a /data: full within a day at the rate of the last six hours.",
        {_FREE: f"{10**10}-{10**6}x400", _SIZE: f"{10**10}x400"},
    ),
    Story(
        "OttlaDiskSlow",
        {
            _LATENCY + '{directory="/data",instance="a",le="0.5"}': "0+1x30",
            _LATENCY + '{directory="/data",instance="a",le="1"}': "0+10x30",
            _LATENCY + '{directory="/data",instance="a",le="+Inf"}': "0+10x30",
        },
        21,
        {"instance": "a", "directory": "/data"},
        "a /data: a small write takes 944.4ms.",
        {
            _LATENCY + '{directory="/data",instance="a",le="0.5"}': "0+10x30",
            _LATENCY + '{directory="/data",instance="a",le="1"}': "0+10x30",
            _LATENCY + '{directory="/data",instance="a",le="+Inf"}': "0+10x30",
        },
    ),
    Story(
        "OttlaDiskHung",
        {'ottla_disk_waiting_seconds{directory="/data",instance="a"}': "0 31"},
        1,
        {"instance": "a", "directory": "/data"},
        "a /data: no answer for 31s.",
        {'ottla_disk_waiting_seconds{directory="/data",instance="a"}': "0 29"},
    ),
    Story(
        "OttlaLoopStalls",
        {'ottla_loop_longest_stall_seconds{instance="a"}': "2x9"},
        6,
        {"instance": "a"},
        "a did not answer any client for 2s.",
        {'ottla_loop_longest_stall_seconds{instance="a"}': "2x3 0.01 2x3"},
    ),
    Story(
        "OttlaOverloaded",
        {'kafka_network_socketserver_networkprocessoravgidle_percent{instance="a"}': "0.05x20"},
        11,
        {"instance": "a"},
        "The loop of a is idle for only 5% of the time.",
        {'kafka_network_socketserver_networkprocessoravgidle_percent{instance="a"}': "0.2x20"},
    ),
    Story(
        "OttlaGroupLagGrows",
        {f"{_LATE}{{{_LABELS}}}": "600x40", f"{_LAG}{{{_LABELS}}}": "100+10x40"},
        21,
        {"consumergroup": "readers", "topic": "orders"},
        "readers is 10m 0s behind in orders; its lag grows.",
        {f"{_LATE}{{{_LABELS}}}": "600x40", f"{_LAG}{{{_LABELS}}}": "1000-10x40"},
    ),
    Story(
        "OttlaHangingTransaction",
        {_UNDER + 'partitionswithlatetransactionscount{instance="a"}': "2x9"},
        6,
        {},
        "Partitions with a transaction that hangs: 2. Readers of committed records wait.",
        {_UNDER + 'partitionswithlatetransactionscount{instance="a"}': "2x3 0 2x3"},
    ),
    Story(
        "OttlaCertificateExpires",
        {'ottla_certificate_expiry_timestamp_seconds{listener="SSL",instance="a"}': f"{13 * DAY_S + 3660}x90"},
        61,
        {"listener": "SSL", "instance": "a"},
        "Certificate of SSL on a: 13d 0h 0m 0s left.",
        {'ottla_certificate_expiry_timestamp_seconds{listener="SSL",instance="a"}': f"{15 * DAY_S}x90"},
    ),
    Story(
        "OttlaQuorumLags",
        {'ottla_quorum_voter_lag{voter="2",instance="a"}': "5000x9"},
        6,
        {},
        "A controller is 5000 records of metadata behind: losing another may stop the cluster.",
        {'ottla_quorum_voter_lag{voter="2",instance="a"}': "10x9"},
    ),
    Story(
        "OttlaFaults",
        # The first fault of its kind brings the series with it.
        {'ottla_faults_total{where="Produce",instance="a"}': "_x3 1x20"},
        5,
        {"where": "Produce", "instance": "a"},
        "a ran into a bug (Produce); its log has the traceback.",
        {'ottla_faults_total{where="Produce",instance="a"}': "1x60"},
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("monitoring")
    for name, text in all_files(["node-1:9100", "node-2:9100"], "http://localhost:9090", RUNBOOK).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def test_promtool_takes_the_rules_and_the_configuration(files: Path) -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", files / "prometheus/ottla-rules.yml")
    assert "is valid prometheus config" in promtool("check", "config", files / "prometheus/prometheus.yml")


def test_every_alert_has_its_story() -> None:
    assert [story.alert for story in STORIES] == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("story", STORIES, ids=[story.alert for story in STORIES])
def test_an_alert_fires_in_its_story_and_not_in_the_other(story: Story, files: Path, tmp_path: Path) -> None:
    severity = next(alert.severity for alert in ALERTS if alert.name == story.alert)
    told = {"summary": story.summary, "runbook_url": f"{RUNBOOK}#{story.alert.lower()}"}
    expected = [{"exp_labels": {"severity": severity, **story.labels}, "exp_annotations": told}]
    last = 60 if story.alert == "OttlaFaults" else story.minute
    tests = [
        _test("fires", story.fires, [_question(story.alert, story.minute, expected)]),
        _test("silent", story.silent, [_question(story.alert, last, [])]),
    ]
    file = tmp_path / "stories.yml"  # JSON is YAML.
    file.write_text(json.dumps({"rule_files": [str(files / "prometheus/ottla-rules.yml")], "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", file)


def _test(name: str, series: dict[str, str], questions: list[Any]) -> dict[str, Any]:
    values = [{"series": one, "values": text} for one, text in series.items()]
    return {"name": name, "interval": "1m", "input_series": values, "alert_rule_test": questions}


def _question(alert: str, minute: int, expected: list[Any]) -> dict[str, Any]:
    return {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}
