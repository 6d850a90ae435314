"""G0 and G1c: circles among operations, where each depends on the one before.

Theory of operation: an operation depends on another if its record stands right behind the other's in a partition
(a write on a write), or if it read a record of the other (a read of a write). A circle among writes is G0. A circle
among reads is G1c: both have read what the other could write only afterwards. Circles that need dependencies of both
sorts are distinguished, because Kafka allows them (see `anomaly.ALLOWED_BY_KAFKA`).

Operations that depend on each other in a circle are a strongly connected component of the graph: Tarjan's algorithm
finds these in one pass, and each is reported once.
"""

from collections.abc import Iterator

from ottla.testing.chaos.anomaly import Anomaly, AnomalyKind
from ottla.testing.chaos.operations import Outcome
from ottla.testing.chaos.partition_logs import History

Graph = dict[int, list[int]]
_MOST_SHOWN = 6


def cycles(history: History) -> Iterator[Anomaly]:
    writes, reads = _writes_on_writes(history), _reads_of_writes(history)
    found: set[int] = set()
    both = {node: writes.get(node, []) + reads.get(node, []) for node in [*writes, *reads]}
    for kind, graph in (
        (AnomalyKind.G0, writes),
        (AnomalyKind.G1C, reads),
        (AnomalyKind.G1C_WITH_WRITES, both),
    ):
        for component in components(graph):
            # A circle of both sorts is news only where neither sort alone makes one.
            if kind is not AnomalyKind.G1C_WITH_WRITES or found.isdisjoint(component):
                found.update(component)
                yield Anomaly(kind, _shown(history, sorted(component)))


def _shown(history: History, component: list[int]) -> str:
    names = []
    for index in component[:_MOST_SHOWN]:
        operation = history.operations[index]
        names.append(f"{operation.process} at {operation.began_us} us")
    more = f" and {len(component) - _MOST_SHOWN} more" if len(component) > _MOST_SHOWN else ""
    return " <-> ".join(names) + more


def _writes_on_writes(history: History) -> Graph:
    graph: Graph = {}
    for log in history.logs.values():
        before: int | None = None
        for offset in log.offsets:
            writer = history.writers.get(log.values[offset][0])
            if writer is None or history.operations[writer].outcome is Outcome.FAIL:
                continue
            if before is not None and before != writer:
                graph.setdefault(before, []).append(writer)
            before = writer
    return graph


def _reads_of_writes(history: History) -> Graph:
    graph: Graph = {}
    for reader, operation in enumerate(history.operations):
        if not operation.sends or operation.outcome is Outcome.FAIL:
            continue  # nobody can depend on an operation that wrote nothing
        for polled in operation.polls:
            writer = history.writers.get(polled.value)
            if writer is not None and writer != reader:
                graph.setdefault(writer, []).append(reader)
    return graph


def components(graph: Graph) -> Iterator[list[int]]:
    """The strongly connected components with more than one node. Keeps its own stack: a history is long."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    for root in graph:
        if root in order:
            continue
        path = [(root, iter(graph[root]))]
        order[root] = lowest[root] = len(order)
        open_nodes.append(root)
        is_open.add(root)
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    open_nodes.append(target)
                    is_open.add(target)
                    path.append((target, iter(graph.get(target, ()))))
                    break
                if target in is_open:
                    lowest[node] = min(lowest[node], order[target])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    start = _last_index(open_nodes, node)
                    component = open_nodes[start:]
                    del open_nodes[start:]
                    is_open.difference_update(component)
                    if len(component) > 1:
                        yield component


def _last_index(nodes: list[int], node: int) -> int:
    index = len(nodes) - 1
    while nodes[index] != node:
        index -= 1
    return index
