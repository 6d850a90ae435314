"""What went through, counted where it happens: integers that only grow. Dashboards make rates of them."""

_COUNTERS = (
    "bytes_in",
    "bytes_out",
    "messages_in",
    "produce_requests",
    "fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
    "produce_conversions",
)


class TopicTraffic:
    """Kafka's BrokerTopicMetrics of one topic. A produce or fetch request counts once for each partition in it."""

    __slots__ = _COUNTERS

    def __init__(self) -> None:
        for counter in _COUNTERS:
            setattr(self, counter, 0)

    bytes_in: int
    bytes_out: int
    messages_in: int
    produce_requests: int
    fetch_requests: int
    failed_produce_requests: int
    failed_fetch_requests: int
    produce_conversions: int

    def __add__(self, other: "TopicTraffic") -> "TopicTraffic":
        total = TopicTraffic()
        for counter in _COUNTERS:
            setattr(total, counter, getattr(self, counter) + getattr(other, counter))
        return total


class Traffic:
    """The traffic of every topic. What deleted topics had stays in the total."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self.gone = TopicTraffic()

    def of(self, topic: str) -> TopicTraffic:
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        if gone := self.topics.pop(topic, None):
            self.gone += gone

    @property
    def total(self) -> TopicTraffic:
        return sum(self.topics.values(), self.gone)
