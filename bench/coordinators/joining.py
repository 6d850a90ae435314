"""How long members take to join a group that is new, and to settle: all of them in one generation or epoch.

All join at once, over connections that are open already. Settled members heartbeat, together 5,000 times a second, so
that one who missed the last rebalance hears of it soon; real ones do every three seconds.
"""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from uuid import uuid4

from contenders import Contender
from load import alternating
from members import Member, classic_script, consumer_script, leave_classic, leave_consumer, run_members
from report import Row, compared
from wire_client import GROUPS, WireClient

from ottla.wire.messages import ConsumerProtocolSubscription
from ottla.wire.record_values import encode_versioned

COUNTS = (1, 50, 500)
PARTITIONS = 500
HEARTBEATS_PER_S = 5000
CLASSIC_PAUSE_S = 0.005  # between heartbeats; of those that have settled before the last has joined there are few
WARM_UPS = 6
CPU_TICK_S = 0.01
TOPIC = "joined"

_numbers = count()


def measure_joining(nodes: list[Contender], rounds: int) -> list[Row]:
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic(TOPIC, PARTITIONS)
            client.ready_coordinators(GROUPS)
        for _ in range(WARM_UPS):
            for settle in PROTOCOLS.values():
                settle(node, 50)
    rows = []
    for protocol, settle in PROTOCOLS.items():
        for members in COUNTS:
            cpu: dict[str, list[float]] = {node.name: [] for node in nodes}

            def one(node: Contender, settle=settle, members=members, cpu=cpu) -> float:
                before = node.cpu_s()
                took = settle(node, members)
                cpu[node.name].append(max(node.cpu_s() - before, CPU_TICK_S))
                return took

            several = rounds if members == max(COUNTS) else 3 * rounds  # of what is over soon
            results = alternating(several, [lambda node=node, one=one: one(node) for node in nodes])
            named = dict(zip([node.name for node in nodes], results, strict=True))
            what = f"{protocol} protocol, {members} member{'s' if members > 1 else ''} joining"
            rows.append(compared(what, named, lambda s: f"{s * 1000:.1f} ms", at_most=1.0))
            if members > 1:
                rows.append(compared("  processor time, leaving included", cpu, lambda s: f"{s * 1000:.0f} ms"))
    return rows


def settle_classic(node: Contender, members: int) -> float:
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=[TOPIC]), 3)
    group = f"classic-{next(_numbers)}"
    joining = [Member(group, "") for _ in range(members)]

    def is_settled() -> bool:
        first = joining[0].epoch
        return first is not None and all(member.epoch == first for member in joining)

    with ExitStack() as opened:
        clients = [opened.enter_context(WireClient(node.bootstrap)) for _ in joining]
        scripts = [classic_script(member, subscription, CLASSIC_PAUSE_S) for member in joining]
        took = run_members(clients, scripts, is_settled)
    with WireClient(node.bootstrap) as client:
        leave_classic(client, joining)
    return took


def settle_consumer(node: Contender, members: int) -> float:
    group = f"consumer-{next(_numbers)}"
    joining = [Member(group, str(uuid4())) for _ in range(members)]

    def is_settled() -> bool:
        first = joining[0].epoch
        if not first or any(member.epoch != first for member in joining):
            return False
        owned = [partition for member in joining for partition in member.partitions]
        return len(owned) == PARTITIONS == len(set(owned))

    with ExitStack() as opened:
        clients = [opened.enter_context(WireClient(node.bootstrap)) for _ in joining]
        scripts = [consumer_script(member, TOPIC, members / HEARTBEATS_PER_S) for member in joining]
        took = run_members(clients, scripts, is_settled)
    with WireClient(node.bootstrap) as client:
        leave_consumer(client, joining)
    return took


PROTOCOLS: dict[str, Callable[[Contender, int], float]] = {"classic": settle_classic, "consumer": settle_consumer}
