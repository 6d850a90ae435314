"""The demo's story: a node, a live stream, a pipeline that is killed in the middle, and the check in the end."""

import math
import time
from contextlib import ExitStack, suppress

from ottla.base.errors import OttlaError
from ottla.spark.demo.answers import Answers
from ottla.spark.demo.auction_house import AuctionHouse
from ottla.spark.demo.expected import differences, expected
from ottla.spark.demo.job import Job
from ottla.spark.demo.screen import Scene, Screen, open_screen
from ottla.spark.demo.settings import BIDDERS, GIVE_UP_AFTER_S, PARTITIONS, PRICES, DemoSettings
from ottla.spark.nexmark.records import TOPICS
from ottla.testing.node import RunningNode

TICK_S = 0.1


def run(settings: DemoSettings) -> int:
    """Returns the exit status: 0 if the pipeline's results are those of the direct computation.

    However it ends, by Ctrl-C too, nothing of it is left: no process and no file.
    """
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

    with ExitStack() as at_end:
        screen = open_screen()
        at_end.callback(screen.close)
        node = at_end.enter_context(RunningNode())
        screen.tell(f"Node: ready at {node.bootstrap}, {node.rss_bytes() >> 20} MB")
        create_topics(node)
        job = Job(node.bootstrap, node.directory / "pipeline")
        at_end.push(lambda kind, *_: job.stop() if kind is None else job.kill())
        screen.tell("Pipeline: Spark starts, which takes some seconds")
        start_pipeline(job)
        producer = Producer(bootstrap_servers=node.bootstrap, linger_ms=20)
        # Ctrl-C in a terminal reaches the node too: then nobody takes what is left to send.
        at_end.push(lambda kind, *_: producer.close(None if kind is None else 0))
        reading = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        consumer = at_end.enter_context(Consumer({"bootstrap.servers": node.bootstrap, **reading}))
        show = Showing(screen, node, job, Answers(consumer), AuctionHouse(producer, settings), settings)
        took_s = show.live()
        is_well = show.end(took_s)
        if settings.keep:
            with suppress(KeyboardInterrupt):
                show.stay()
            job.kill()
    return 0 if is_well else 1


def start_pipeline(job: Job) -> None:
    """Returns when its queries wait for events."""
    deadline_s = time.monotonic() + GIVE_UP_AFTER_S
    job.start()
    while job.state == "starting":
        time.sleep(TICK_S)
        job.start_again_if_the_machine_was_too_busy()
        if job.failure or not job.is_running or time.monotonic() > deadline_s:
            raise DemoFailed(f"the pipeline did not start: {job.failure or ''}\n{job.end_of_log()}")


def create_topics(node: RunningNode) -> None:
    from ottla.admin import NewTopic
    from ottla.client.blocking.admin import Admin

    streams = [NewTopic(topic, partitions=PARTITIONS) for topic in (*TOPICS, PRICES)]
    changelog = NewTopic(BIDDERS, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([*streams, changelog]).raise_first()


class Showing:
    """One run. Everything happens in one thread, a tick at a time: send what is due, take answers, draw."""

    def __init__(
        self,
        screen: Screen,
        node: RunningNode,
        job: Job,
        answers: Answers,
        house: AuctionHouse,
        settings: DemoSettings,
    ) -> None:
        self._screen = screen
        self._node = node
        self._job = job
        self._answers = answers
        self._house = house
        self._settings = settings
        self._killed_s: float | None = None
        self._deadline_s = time.monotonic() + settings.events / settings.rate + GIVE_UP_AFTER_S

    def live(self) -> float:
        """The auction house is open; half-way the pipeline is killed. Returns how long it took until all was there."""
        settings, house = self._settings, self._house
        self._screen.tell(
            f"Auctions: {settings.events:,} events, {settings.rate:,.0f} a second; of 50 one is a person, "
            "3 are auctions and 46 are bids"
        )
        began_s = time.monotonic()
        while not house.is_over or self._killed_s is None:
            house.send_due()
            # It is killed when it has written something, so that there is something to be written twice.
            if self._killed_s is None and house.sent >= settings.kill_at * settings.events and self._answers.records:
                self._kill()
            self._tick()
        house.close_doors()
        self._screen.tell(f"Auctions: closed after {time.monotonic() - began_s:.0f} s; the pipeline does what is left")
        prices, bidders = expected(settings, house.began_ms)
        while not (len(self._answers.prices) >= len(prices) and self._answers.bidders == bidders):
            self._tick()
            if time.monotonic() > self._deadline_s:
                break
        return time.monotonic() - began_s

    def end(self, took_s: float) -> bool:
        """Compares with the direct computation, and tells throughput and where to look next."""
        settings, answers, job = self._settings, self._answers, self._job
        for _ in range(10):  # what is written twice may come last
            self._tick()
        prices, bidders = expected(settings, self._house.began_ms)
        wrong = differences(answers, prices, bidders)
        tell = self._screen.tell
        tell(f"Result: {len(answers.prices)} windows and {len(answers.bidders):,} bidders, {answers.records:,} records")
        for problem in wrong:
            tell(f"    WRONG: {problem}")
        if not wrong:
            tell("    the same as computed directly from the events, and nothing twice: exactly once, over a kill -9")
        rows, best = sum(job.rows.values()), sum(job.best_rate.values())
        tell(
            f"Throughput: {settings.events / took_s:,.0f} events/s end to end, recovery included; Spark's tasks read "
            f"{rows:,} rows, up to {best:,.0f} a second"
        )
        tell(
            "Next: docs/spark.md for the source and the sink, docs/spark/pipelines.md for pipelines like this one "
            "(src/ottla/spark/demo/pipeline.py);\n    `ottla demo node` shows the node alone, README.md has the tour."
        )
        return not wrong

    def stay(self) -> None:
        """Leaves everything running until the Ctrl-C that it raises."""
        bootstrap = self._node.bootstrap
        self._screen.tell(
            f"Kept: the node at {bootstrap} and the pipeline continue. Look at them with\n"
            f"    ottla top -b {bootstrap}\n"
            f"    ottla tail -b {bootstrap} {PRICES}\n"
            "Ctrl-C ends both."
        )
        self._deadline_s = math.inf
        while True:
            self._tick()

    def _kill(self) -> None:
        self._killed_s = time.monotonic()
        self._job.kill()
        self._screen.tell(
            f"Pipeline: killed with kill -9, at {self._house.sent:,} events, after {self._job.batches} batches; "
            "and started again"
        )
        self._job.start()

    def _tick(self) -> None:
        self._answers.take(TICK_S)
        self._screen.show(
            Scene(self._house.sent, self._settings.events, self._node.rss_bytes() >> 20, self._job, self._answers)
        )
        if self._job.start_again_if_the_machine_was_too_busy():
            self._screen.tell("Pipeline: this machine is too busy for Spark, which gave up; started again")
        if self._job.failure or not self._job.is_running or time.monotonic() > self._deadline_s:
            why = self._job.failure or ("it took too long" if self._job.is_running else "it has ended")
            raise DemoFailed(f"the pipeline did not finish: {why}\n{self._job.end_of_log()}")


class DemoFailed(OttlaError):
    """The pipeline is not there any more, or does not come to an end; the message has the end of its log."""
