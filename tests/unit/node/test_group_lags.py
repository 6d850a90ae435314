"""Lag of groups as their coordinator tells it: of partitions that it leads, and of those that others lead."""

from types import SimpleNamespace

from ottla.node.metrics.group_lags import EndsOverTime, GroupLags
from ottla.node.metrics.group_metrics import group_metrics
from ottla.node.metrics.node_watch import NodeWatch
from ottla.runtime.exposition import Exposition
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListOffsetsResponse

HERE, ELSEWHERE = 1, 2


class Scene:
    """Broker 1 coordinates the group `readers`; it leads orders-0, broker 2 leads orders-1."""

    def __init__(self, most: int = 100) -> None:
        self.now_ms = 1_000_000
        self.asked: list[tuple[int, object]] = []
        self.committed = [("readers", "orders", 0, 10), ("readers", "orders", 1, 10)]
        led = SimpleNamespace(
            machine=SimpleNamespace(groups={}, offsets=SimpleNamespace(each=lambda: iter(self.committed)))
        )
        own = SimpleNamespace(
            name=("orders", 0),
            is_leader=True,
            state=object(),
            log=SimpleNamespace(high_watermark=15, log_start_offset=0, segments=[]),
        )
        self.broker = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: self.now_ms),
            config=SimpleNamespace(integer=lambda _name: most),
            coordinators=SimpleNamespace(groups=SimpleNamespace(active=[led], partitions={})),
            identity=SimpleNamespace(node_id=HERE),
            metadata=SimpleNamespace(leader_of=lambda _topic, index: HERE if index == 0 else ELSEWHERE),
            partitions={("orders", 0): own},
            peers=SimpleNamespace(ask=self._ask),
            world=SimpleNamespace(
                disk=MemoryDisk(),
                workers=None,
                timers=SimpleNamespace(after=lambda _delay_s, callback: callback()),
            ),
        )
        self.lags = GroupLags(self.broker)

    def _ask(self, node_id, request, _version, then, failed) -> None:
        self.asked.append((node_id, request, then, failed))

    def answer(self, offset: int) -> None:
        _, _, then, _ = self.asked.pop()
        partition = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=1, error_code=ErrorCode.NONE, offset=offset
        )
        then(
            ListOffsetsResponse(
                topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[partition])]
            )
        )

    def page(self) -> str:
        page = Exposition()
        return "".join(group_metrics(page, self.broker, self.lags)) + page.take()


def test_the_end_of_a_partition_that_another_node_leads_is_asked_there() -> None:
    scene = Scene()
    assert "kafka_consumergroup_lag{" in scene.page()
    assert 'partition="1"' not in scene.page(), "nobody has said yet where it ends"
    scene.lags.look()
    ((node_id, request, *_),) = scene.asked
    assert node_id == ELSEWHERE
    assert [(topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics] == [
        ("orders", [1])
    ]
    scene.answer(30)
    page = scene.page()
    assert 'kafka_consumergroup_lag{consumergroup="readers",topic="orders",partition="0"} 5\n' in page
    assert 'kafka_consumergroup_lag{consumergroup="readers",topic="orders",partition="1"} 20\n' in page
    assert 'kafka_consumergroup_lag_sum{consumergroup="readers",topic="orders"} 25\n' in page


def test_a_node_is_asked_again_only_when_it_has_answered_or_failed() -> None:
    scene = Scene()
    scene.lags.look()
    scene.lags.look()
    assert len(scene.asked) == 1
    scene.asked.pop()[3](ErrorCode.NETWORK_EXCEPTION)
    scene.lags.look()
    assert len(scene.asked) == 1


def test_lag_in_seconds_of_a_partition_elsewhere_is_when_its_end_passed_the_offset() -> None:
    scene = Scene()
    for end_offset in (10, 20):
        scene.lags.look()
        scene.answer(end_offset)
        scene.now_ms += 10_000
    scene.lags.look()
    scene.committed[1] = ("readers", "orders", 1, 15)
    assert 'lag_seconds{consumergroup="readers",topic="orders",partition="1"} 0\n' in scene.page()
    scene.now_ms += 60_000
    assert 'lag_seconds{consumergroup="readers",topic="orders",partition="1"} 60\n' in scene.page()


def test_what_is_beyond_the_limit_is_counted_and_the_largest_lag_is_shown() -> None:
    scene = Scene(most=1)
    scene.lags.look()
    scene.answer(30)
    page = scene.page()
    assert "ottla_consumergroup_partitions_left_out 1\n" in page
    assert page.count("kafka_consumergroup_lag{") == 1
    assert 'kafka_consumergroup_lag{consumergroup="readers",topic="orders",partition="1"} 20\n' in page


def test_ends_over_time_are_few_and_between_two_of_them_time_is_shared_out() -> None:
    ends = EndsOverTime()
    for tick in range(100):
        ends.note(tick * 1000, tick * 10)
    assert len(ends.samples) <= 12
    assert ends.age_ms(985, 99_000) == 500
    assert ends.age_ms(0, 99_000) in range(98_000, 99_001)
    assert ends.age_ms(990, 99_000) is None, "it has not come yet"


def test_a_group_that_has_nothing_to_read_is_not_behind() -> None:
    scene = Scene()
    scene.committed[0] = ("readers", "orders", 0, 20)
    page = scene.page()
    assert 'kafka_consumergroup_lag{consumergroup="readers",topic="orders",partition="0"} 0\n' in page
    assert 'lag_seconds{consumergroup="readers",topic="orders",partition="0"} 0\n' in page


def test_stalls_and_idle_time_are_of_the_last_minute() -> None:
    now = [0.0]
    loop = SimpleNamespace(busy_s=0.0, longest_s=0.0, rounds=0)
    world = SimpleNamespace(timers=SimpleNamespace(now_s=lambda: now[0]), clock=None)
    watch = NodeWatch(world, SimpleNamespace(disks={}), loop)
    watch.sample()
    loop.busy_s, loop.longest_s, now[0] = 2.5, 0.7, 5.0
    watch.sample()
    assert loop.longest_s == 0.0
    assert watch.longest_stall_s == 0.7
    assert watch.idle_share == 0.5
    for _ in range(13):
        now[0] += 5.0
        watch.sample()
    assert watch.longest_stall_s == 0.0
    assert watch.idle_share == 1.0
