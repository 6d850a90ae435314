"""The metrics page: Kafka's names as the usual JMX-exporter rules write them, with what a small broker has."""

import re
from types import SimpleNamespace

import pytest

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.partitions.traffic import Traffic
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.log.producer_state import ProducerState
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.quota.limits import TokenBuckets
from ottla.machines.quota.rates import Windows
from ottla.node.metrics.group_lags import GroupLags
from ottla.node.metrics.group_metrics import group_metrics
from ottla.node.metrics.metric_help import METRIC_HELP
from ottla.node.metrics.node_health import DiskState
from ottla.node.metrics.node_metrics import metrics_page
from ottla.node.metrics.watch_metrics import add_node
from ottla.runtime.exposition import Exposition
from ottla.runtime.request_metrics import RequestMetrics, Times
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.messages import PartitionRecord, RegisterBrokerRecord, TopicRecord

COUNTED_BEANS = [
    *(
        f"kafka.server:type=BrokerTopicMetrics,name={name}"
        for name in (
            "BytesInPerSec",
            "BytesOutPerSec",
            "MessagesInPerSec",
            "TotalProduceRequestsPerSec",
            "TotalFetchRequestsPerSec",
            "FailedProduceRequestsPerSec",
            "FailedFetchRequestsPerSec",
            "ProduceMessageConversionsPerSec",
        )
    ),
    "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
    "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec",
    "kafka.network:type=RequestMetrics,name=RequestsPerSec",
]

GAUGED_BEANS = [
    *(
        f"kafka.server:type=ReplicaManager,name={name}"
        for name in (
            "PartitionCount",
            "LeaderCount",
            "OfflineReplicaCount",
            "UnderReplicatedPartitions",
            "UnderMinIsrPartitionCount",
            "AtMinIsrPartitionCount",
        )
    ),
    *(
        f"kafka.controller:type=KafkaController,name={name}"
        for name in (
            "ActiveControllerCount",
            "ActiveBrokerCount",
            "FencedBrokerCount",
            "GlobalTopicCount",
            "GlobalPartitionCount",
            "OfflinePartitionsCount",
            "PreferredReplicaImbalanceCount",
            "LastAppliedRecordOffset",
            "LastAppliedRecordTimestamp",
            "LastCommittedRecordOffset",
        )
    ),
    *(
        f"kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name={name}"
        for name in ("UnknownDestinationQueueSize", "LogAppendRetryQueueSize")
    ),
    "kafka.server:type=ReplicaManager,name=ProducerIdCount",
    "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
    "kafka.cluster:type=Partition,name=LastStableOffsetLag",
    *(f"kafka.log:type=Log,name={name}" for name in ("Size", "LogStartOffset", "LogEndOffset", "NumLogSegments")),
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
    "kafka.network:type=RequestMetrics,name=TotalTimeMs",
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
    "kafka.server:type=KafkaServer,name=BrokerState",
]


def exported(bean: str) -> str:
    """The rules: lower case, domain, type and name joined with underscores, a rate as its `_total`."""
    domain, type, name = re.fullmatch(r"([\w.]+):type=(\w+),name=(\w+)", bean).groups()
    name = re.sub("PerSec$", "_total", name)
    return f"{domain.replace('.', '_')}_{type}_{name}".lower()


UNDECIDED = ProducerState()
UNDECIDED.unreplicated = {11: 20}


class Sessions:
    partition_count = 5

    def __len__(self):
        return 2


def partition(name, *, leads=True, min_insync_replicas=1):
    log = SimpleNamespace(
        size=1000,
        log_start_offset=5,
        last_stable_offset=11,
        high_watermark=14,
        log_end_offset=15,
        segments=[1, 2, 3],
        producers=UNDECIDED,
    )
    settings = SimpleNamespace(min_insync_replicas=min_insync_replicas)
    state = object() if leads else None
    return SimpleNamespace(name=name, is_leader=leads, state=state, log=log, settings=settings)


def a_page(isr_of_orders_0=(1,), min_insync_replicas=2, is_controller=True):
    """Broker 1 leads orders-0, whose ISR is too small, and follows in orders-1; nobody leads orders-2."""
    image = MetadataImage()
    image.replay(RegisterBrokerRecord(broker_id=1, fenced=False))
    image.replay(RegisterBrokerRecord(broker_id=2, fenced=True))
    image.replay(TopicRecord(name="orders", topic_id=b"t" * 16))
    for index, (leader, isr) in enumerate([(1, isr_of_orders_0), (2, (2, 1)), (-1, (2,))]):
        replicas = (1, 2) if index != 1 else (2, 1)
        image.replay(
            PartitionRecord(
                partition_id=index,
                topic_id=b"t" * 16,
                replicas=replicas,
                isr=isr,
                leader=leader,
                directories=(bytes(16),) * 2,
            )
        )
    traffic = Traffic()
    traffic.of("orders").bytes_in = 300
    traffic.of('odd"name').bytes_in = 30
    traffic.of("deleted").bytes_in = 3
    traffic.forget("deleted")
    logs = SimpleNamespace(online={"/a": None}, offline={"/b": "gone"})
    world = SimpleNamespace(timers=None, workers=None, clock=SimpleNamespace(elapsed_s=None))
    partitions = Partitions(None, None, None, logs, world, PartitionEvents())
    for held in (
        partition(TopicPartition("orders", 0), min_insync_replicas=min_insync_replicas),
        partition(TopicPartition("orders", 1), leads=False),
    ):
        partitions[held.name] = held
    partitions.traffic = traffic
    partitions.offline.add(("orders", 2))
    broken = SimpleNamespace(
        offline={"one", "other"}, machine=SimpleNamespace(groups={}, offsets=SimpleNamespace(each=list))
    )
    broker = SimpleNamespace(
        image=image,
        identity=SimpleNamespace(node_id=1),
        partitions=partitions,
        cleaner=None,
        fetch_sessions=Sessions(),
        isr_changes=SimpleNamespace(shrinks=0, expansions=0),
        client_quotas=ClientQuotas(StepTimers(FixedClock()), Values({}, settings(Scope.BROKER))),
        coordinators=SimpleNamespace(
            groups=SimpleNamespace(active=(broken,), partitions={}),
            transactions=SimpleNamespace(active=(), markers=SimpleNamespace(unwritten=0, uncompleted=0)),
        ),
        config=SimpleNamespace(integer=lambda name: 900_000),
        clock=SimpleNamespace(now_ms=lambda: 0),
    )
    requests = RequestMetrics(now_s=lambda: 1.0)
    for _ in range(2):
        requests.on_fault("JoinGroup")
    requests.on_responses([SimpleNamespace(api_key=0, api_version=9, size=100, received_s=0.0)] * 3, 0.010)
    requests.unanswered = lambda: 1
    requests.on_connection("PLAINTEXT", 1)
    requests.on_refused("max.connections")
    metadata = SimpleNamespace(is_active=True, committed_offset=100, last_timestamp_ms=1234)
    pieces = metrics_page(broker, requests, metadata, TokenBuckets(Windows()), is_controller=is_controller)
    return "".join(pieces)


@pytest.fixture(scope="module")
def page():
    return a_page()


def value(page: str, sample: str) -> float:
    (found,) = (line.removeprefix(sample) for line in page.splitlines() if line.startswith(sample + " "))
    return float(found)


@pytest.mark.parametrize("bean", COUNTED_BEANS)
def test_kafkas_rates_are_counters(page, bean):
    assert f"# TYPE {exported(bean)} counter\n" in page


@pytest.mark.parametrize("bean", GAUGED_BEANS)
def test_kafkas_other_values_are_gauges(page, bean):
    assert f"# TYPE {exported(bean)} gauge\n" in page


def test_every_line_is_a_sample_or_its_type_or_help(page):
    sample = re.compile(r"[a-z_]+(\{(\w+=\"([^\"\\]|\\.)*\",?)+\})? [-+0-9.e]+")
    typed = re.compile(r"# TYPE [a-z_]+ (counter|gauge|histogram)|# HELP [a-z_]+ \S.*")
    assert [line for line in page.splitlines() if not (sample.fullmatch(line) or typed.fullmatch(line))] == []
    types = [line for line in page.splitlines() if line.startswith("#")]
    assert len(set(types)) == len(types)


def test_every_metric_says_what_it_is(page):
    typed = re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)
    assert len(typed) > 80
    assert [name for name in typed if name not in METRIC_HELP] == []


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("kafka_server_brokertopicmetrics_bytesin_total", 333),
        ('kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}', 300),
        ('kafka_server_brokertopicmetrics_bytesin_total{topic="odd\\"name"}', 30),
        ('kafka_network_requestmetrics_requests_total{request="Produce",version="9"}', 3),
        ('kafka_network_requestmetrics_totaltimems_count{request="Produce"}', 3),
        ('kafka_network_requestmetrics_totaltimems_sum{request="Produce"}', 30),
        ("kafka_network_requestchannel_requestqueuesize", 1),
        ('ottla_network_request_bytes_total{request="Produce"}', 300),
        ('ottla_connections_refused_total{reason="max.connections"}', 1),
        ('ottla_connections_refused_total{reason="TLS handshake"}', 0),
        ('kafka_server_socket_server_metrics_failed_authentication_total{listener="PLAINTEXT"}', 0),
        ('ottla_faults_total{where="JoinGroup"}', 2),
        ('ottla_coordinator_offline{coordinator="groups"}', 2),
        ('ottla_coordinator_offline{coordinator="transactions"}', 0),
        ('kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}', 1),
        ("kafka_server_replicamanager_partitioncount", 2),
        ("kafka_server_replicamanager_leadercount", 1),
        ("kafka_server_replicamanager_offlinereplicacount", 1),
        ("kafka_server_replicamanager_underreplicatedpartitions", 1),
        ("kafka_server_replicamanager_underminisrpartitioncount", 1),
        ("kafka_server_replicamanager_atminisrpartitioncount", 0),
        ("kafka_log_logmanager_offlinelogdirectorycount", 1),
        ('kafka_log_log_size{topic="orders",partition="0"}', 1000),
        ('kafka_log_log_logendoffset{topic="orders",partition="1"}', 15),
        ('kafka_log_log_numlogsegments{topic="orders",partition="1"}', 3),
        ('kafka_cluster_partition_laststableoffsetlag{topic="orders",partition="1"}', 3),
        ('kafka_cluster_partition_underminisr{topic="orders",partition="0"}', 1),
        ('kafka_cluster_partition_atminisr{topic="orders",partition="0"}', 0),
        ('kafka_topic_partitions{topic="orders"}', 3),
        ('kafka_topic_partition_current_offset{topic="orders",partition="0"}', 14),
        ('kafka_topic_partition_oldest_offset{topic="orders",partition="0"}', 5),
        ('kafka_topic_partition_replicas{topic="orders",partition="0"}', 2),
        ('kafka_topic_partition_in_sync_replica{topic="orders",partition="0"}', 1),
        ('kafka_topic_partition_leader_is_preferred{topic="orders",partition="0"}', 1),
        ('kafka_topic_partition_under_replicated_partition{topic="orders",partition="0"}', 1),
        ("kafka_brokers", 1),
        ('ottla_request_duration_seconds_bucket{request="Produce",le="0.008192"}', 0),
        ('ottla_request_duration_seconds_bucket{request="Produce",le="0.016384"}', 3),
        ('ottla_request_duration_seconds_bucket{request="Produce",le="+Inf"}', 3),
        ('ottla_request_duration_seconds_count{request="Produce"}', 3),
        ("ottla_consumergroup_partitions_left_out", 0),
        ("ottla_transaction_open_seconds_max", 0),
        ("kafka_controller_kafkacontroller_activecontrollercount", 1),
        ("kafka_controller_kafkacontroller_activebrokercount", 1),
        ("kafka_controller_kafkacontroller_fencedbrokercount", 1),
        ("kafka_controller_kafkacontroller_globaltopiccount", 1),
        ("kafka_controller_kafkacontroller_globalpartitioncount", 3),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", 1),
        ("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", 1),
        ("kafka_controller_kafkacontroller_lastcommittedrecordoffset", 99),
        ("kafka_controller_kafkacontroller_lastappliedrecordtimestamp", 1234),
        ("kafka_server_fetchsessioncache_numincrementalfetchsessions", 2),
        ("kafka_server_kafkaserver_brokerstate", 3),
    ],
)
def test_what_the_broker_has_is_on_the_page(page, sample, expected):
    assert value(page, sample) == pytest.approx(expected)


@pytest.mark.parametrize("quantile", ["0.5", "0.75", "0.95", "0.98", "0.99", "0.999"])
def test_times_are_quantiles_in_milliseconds(page, quantile):
    sample = f'kafka_network_requestmetrics_totaltimems{{request="Produce",quantile="{quantile}"}}'
    assert 10 <= value(page, sample) < 11.5


def test_the_process_is_measured(page):
    assert value(page, "process_cpu_seconds_total") > 0


def test_what_only_the_leader_knows_is_told_by_the_leader_alone(page):
    assert 'kafka_topic_partition_current_offset{topic="orders",partition="1"}' not in page
    assert 'kafka_log_log_size{topic="orders",partition="1"}' in page


def test_a_partition_with_few_replicas_needs_no_more_than_it_has():
    """As for writes, and as Kafka has it: with all of them in sync it is at its least, not under it."""
    page = a_page(isr_of_orders_0=(1, 2), min_insync_replicas=3)
    assert value(page, 'kafka_cluster_partition_underminisr{topic="orders",partition="0"}') == 0
    assert value(page, 'kafka_cluster_partition_atminisr{topic="orders",partition="0"}') == 1


def test_only_controllers_tell_of_the_controller():
    """As in Kafka. What a broker knows of the metadata, it tells under the names of Kafka's brokers."""
    page = a_page(is_controller=False)
    assert "kafka_controller_" not in page
    assert value(page, "kafka_server_broker_metadata_metrics_last_applied_record_offset") == 99
    assert value(page, "kafka_server_broker_metadata_metrics_last_applied_record_timestamp") == 1234


def test_a_histogram_forgets_nothing_when_quantiles_do():
    times = Times()
    for now_s in (0.0, 61.0, 122.0, 600.0):
        times.note(0.002, now_s)
    assert dict(times.histogram())[0.004096] == times.count == 4
    assert dict(times.histogram())[0.001024] == 0


def test_a_piece_of_a_large_page_has_few_lines():
    """The loop does other work after each: no metric of thousands of partitions or groups is made at once."""
    broker = SimpleNamespace(
        partitions=Partitions(
            None,
            None,
            None,
            SimpleNamespace(online={}, offline={}),
            SimpleNamespace(timers=None, workers=None, clock=SimpleNamespace(elapsed_s=None)),
            PartitionEvents(),
        ),
        coordinators=SimpleNamespace(groups=SimpleNamespace(active=(), partitions={})),
        config=SimpleNamespace(integer=lambda name: 50_000),
        clock=SimpleNamespace(now_ms=lambda: 0),
    )
    lags = GroupLags(broker)
    committed = [(f"group-{n // 10}", f"t-{n % 10}", n, 0) for n in range(20_000)]
    lags.all = lambda: iter([(committed, [n % 3 for n in range(20_000)])])
    pieces = list(group_metrics(Exposition(), broker, lags))
    assert sum(piece.count("\n") for piece in pieces) > 80_000
    assert max(piece.count("\n") for piece in pieces) <= 5_002


def test_names_of_directories_are_escaped_in_every_metric():
    disk = DiskState()
    disk.times.note(0.01, 0.0)
    disk.size_bytes = 1
    watch = SimpleNamespace(idle_share=1.0, loop=None, tls=None, health=SimpleNamespace(disks={'/a"b': disk}))
    page = Exposition(METRIC_HELP)
    add_node(page, watch, now_s=0.0)
    labels = {line.partition("{")[2] for line in page.take().splitlines() if "directory" in line and "#" not in line}
    assert labels
    assert all(label.startswith('directory="/a\\"b"') for label in labels)
