"""Three secured nodes, watched by a real Prometheus over HTTPS with a login, under load: every expression of our
dashboards, and of those that people have, shows something; alerts fire for a killed node and a group that falls behind,
others stay silent, and all are silent before and after.

Rules wait for minutes and look back for longer. Here all their times are a thirtieth (`in_less_time`); as they are they
are tested by `test_rules.py`.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from ottla import Admin, Consumer, NewTopic, Producer
from ottla.cli.dashboards.alerts import ALERTS, rules_text
from ottla.cli.dashboards.grafana import DASHBOARDS
from ottla.cli.local_cluster.cluster_making import make_cluster
from ottla.cli.local_cluster.cluster_security import client_properties
from ottla.errors import KafkaError
from ottla.testing.free_ports import free_ports
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, add_settings
from tests.interop.monitoring.prometheus import Prometheus, program
from tests.interop.monitoring.used_metrics import USES

pytestmark = pytest.mark.interop

FASTER = 30
WAIT_S = 90.0
OF_THE_MACHINE = {"OttlaDiskFull", "OttlaDiskFillsUp", "OttlaDiskSlow", "OttlaLoopStalls", "OttlaOverloaded"}
"""May fire where the machine is full or slow, whatever the cluster does."""
QUERIES = [
    (f"{dashboard.name}: {panel.title}", query)
    for dashboard in DASHBOARDS
    for panel in dashboard.panels
    for query, _ in panel.queries
]
EMPTY = {"ottla-node: Unexpected exceptions"}
"""What a cluster without a bug has nothing to show for."""


def in_less_time(rules: str) -> str:
    def shorter(match: re.Match[str]) -> str:
        seconds = int(match[1]) * {"m": 60, "h": 3600}[match[2]]
        return f"{max(seconds // FASTER, 2 if match[1] != '0' else 0)}s"

    rules = re.sub(r"\b(\d+)([mh])\b", shorter, rules)
    return re.sub(r"(lag_seconds\) >) 300", rf"\1 {300 // FASTER}", rules)


class Scene:
    """The cluster, its load, and who watches it."""

    def __init__(self, directory: Path, cluster: ClusterOfProcesses, prometheus: Prometheus) -> None:
        self.cluster = cluster
        self.prometheus = prometheus
        self.directory = directory
        self.client = client_properties(directory / "cluster")
        self.is_over = Event()
        self.has_read_once = Event()
        self.reads_late_group = Event()
        self.programs = [
            Thread(target=one, daemon=True) for one in (self._write, self._write_in_transactions, self._read)
        ]
        self.late = Thread(target=self._read_late, daemon=True)

    def start(self) -> None:
        with Admin.from_properties(self.client, bootstrap_servers=self.cluster.bootstrap) as admin:
            admin.create_topics(
                [
                    NewTopic("orders", 6, 3, config={"min.insync.replicas": "2"}),
                    NewTopic("results", 3, 3),
                    NewTopic("pair", assignment={0: (1, 3)}, config={"min.insync.replicas": "2"}),
                    NewTopic("alone", assignment={0: (3,)}),
                ]
            ).raise_first()
        for one in (*self.programs, self.late):
            one.start()

    def stop(self) -> None:
        self.is_over.set()
        self.has_read_once.set()
        self.reads_late_group.set()
        for one in (*self.programs, self.late):
            one.join(60)

    def _write(self) -> None:
        with Producer.from_properties(self.client, bootstrap_servers=self.cluster.bootstrap, acks="all") as producer:
            while not self.is_over.wait(0.1):
                for _ in range(20):
                    producer.send("orders", bytes(100))

    def _write_in_transactions(self) -> None:
        with Producer.from_properties(
            self.client, bootstrap_servers=self.cluster.bootstrap, transactional_id="sink"
        ) as producer:
            producer.init_transactions()
            while not self.is_over.wait(0.2):
                try:
                    producer.begin_transaction()
                    producer.send("results", b"one")
                    producer.commit_transaction()
                except KafkaError:
                    producer.abort_transaction()

    def _read(self) -> None:
        self._consume("readers", self.is_over)

    def _read_late(self) -> None:
        """Commits its first records, and reads the others when it is told to."""
        self._consume("late", self.has_read_once)
        self.reads_late_group.wait()
        self._consume("late", self.is_over)

    def _consume(self, group: str, until: Event) -> None:
        with Consumer.from_properties(
            self.client,
            bootstrap_servers=self.cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
        ) as consumer:
            consumer.subscribe(["orders"])
            while not until.is_set():
                consumer.poll(0.2)

    def wait_for(self, expression: str) -> None:
        self.wait_until(lambda: bool(self.prometheus.query(expression)), expression)

    def wait_until(self, look: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + WAIT_S
        while not look():
            assert time.monotonic() < ends_s, f"not after {WAIT_S:.0f} s: {what}; alerts: {self.prometheus.alerts()}"
            time.sleep(0.5)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    program("prometheus")
    directory = tmp_path_factory.mktemp("watched")
    nodes = make_cluster(directory / "cluster", 3, port=0, security="sasl_ssl")
    ports = free_ports(3)
    for node, port in zip(nodes, ports, strict=True):
        add_settings(
            node,
            {
                "ottla.metrics.listener": f"https://127.0.0.1:{port}",
                "ottla.metrics.basic.auth": "prometheus:secret",
            },
        )
    rules = directory / "rules.yml"
    rules.write_text(in_less_time(rules_text("https://example.com/runbook")))
    configuration = CONFIGURATION.format(
        rules=rules,
        authority=directory / "cluster" / "security" / "ca.pem",
        targets=", ".join(f"'127.0.0.1:{port}'" for port in ports),
    )
    with (
        ClusterOfProcesses(directory / "cluster", nodes=nodes) as cluster,
        Prometheus(directory / "prometheus", configuration) as prometheus,
    ):
        scene = Scene(directory, cluster, prometheus)
        scene.start()
        try:
            scene.wait_for("sum(rate(kafka_server_brokertopicmetrics_messagesin_total[5m])) > 0")
            scene.wait_for('count(kafka_consumergroup_current_offset{consumergroup="late"}) == 6')
            scene.has_read_once.set()
            scene.wait_for("ottla_transactional_ids > 0")
            yield scene
        finally:
            scene.stop()


CONFIGURATION = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: ['{rules}']
scrape_configs:
  - job_name: ottla
    scheme: https
    tls_config: {{ca_file: '{authority}'}}
    basic_auth: {{username: prometheus, password: secret}}
    static_configs:
      - targets: [{targets}]
"""


@pytest.mark.parametrize(
    ("where", "query"), QUERIES, ids=[f"{where}: {number}" for number, (where, _) in enumerate(QUERIES)]
)
def test_an_expression_of_our_dashboards_shows_something(scene: Scene, where: str, query: str) -> None:
    query = re.sub(r"\$\w+", ".*", query)
    if where in EMPTY:
        scene.prometheus.query(query)
    else:
        scene.wait_for(query)


@pytest.mark.parametrize("query", [use.expression for use in USES])
def test_an_expression_of_dashboards_that_people_have_shows_something(scene: Scene, query: str) -> None:
    scene.wait_for(query)
    for labels, _ in scene.prometheus.query(query):
        assert all(labels.values()), labels


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("count(up == 1)", 3),
        ("max(kafka_controller_kafkacontroller_activebrokercount)", 3),
        ("sum(kafka_controller_kafkacontroller_activecontrollercount)", 1),
        ('sum(kafka_topic_partitions{topic="orders"})', 6),
        ('sum(kafka_topic_partition_replicas{topic="orders"})', 18),
        ('sum(kafka_topic_partition_in_sync_replica{topic="orders"})', 18),
        ("sum(kafka_server_replicamanager_underreplicatedpartitions)", 0),
        ('count(kafka_consumergroup_lag{consumergroup="late"})', 6),
        ("count by (__name__) (kafka_server_raftmetrics_current_state == 1)", 3),
    ],
)
def test_sums_over_all_nodes_are_what_the_cluster_has(scene: Scene, query: str, value: float) -> None:
    scene.wait_for(f"{query} == {value}")


def test_alerts_fire_for_what_happened_and_for_nothing_else(scene: Scene) -> None:
    prometheus, cluster = scene.prometheus, scene.cluster
    names = {alert.name for alert in ALERTS} - OF_THE_MACHINE
    lagging = {"OttlaGroupLagGrows"}
    scene.wait_until(lambda: prometheus.firing() & names == lagging, "only the late group is told of")

    cluster.kill(3)
    of_a_lost_node = {"OttlaNodeDown", "OttlaOfflinePartitions", "OttlaUnderMinIsr", "OttlaUnderReplicated"}
    fired: set[str] = set()

    def all_have_fired() -> bool:
        fired.update(prometheus.firing() & names)
        return of_a_lost_node <= prometheus.firing()

    scene.wait_until(all_have_fired, f"{of_a_lost_node} fire")
    assert fired == of_a_lost_node | lagging
    assert prometheus.query("max(kafka_controller_kafkacontroller_offlinepartitionscount)")[0][1] == 1
    assert prometheus.query("sum(kafka_server_replicamanager_underminisrpartitioncount)")[0][1] == 1

    cluster.start(3)
    scene.reads_late_group.set()
    scene.wait_until(lambda: not prometheus.firing() & names, "all is silent again")
