"""What clients tell the log, and how often."""

import logging
import subprocess
import sys
import threading

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.client_log import DEBUG, ERROR, INFO, WARNING, ClientLog, Line
from ottla.client.cluster.cluster import Cluster
from ottla.client.io import log_writer
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.scripted_brokers import DROP, ScriptedBrokers
from ottla.wire.frame import encode_response
from ottla.wire.messages import ListGroupsRequest, ListGroupsResponse

ABOUT = ("broker", "here:9092")


class Told:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.lines: list[Line] = []
        self.log = ClientLog(lambda: self.now_s, self.lines.append)

    def texts(self) -> list[str]:
        texts = [line.text for line in self.lines]
        self.lines.clear()
        return texts


def cluster_of(brokers: ScriptedBrokers, **settings: object) -> Cluster:
    return Cluster(brokers.world, read_settings(Scope.ADMIN, {"bootstrap.servers": brokers.bootstrap}, settings))


def texts(brokers: ScriptedBrokers, level: int = WARNING) -> list[str]:
    found = [line.text for line in brokers.lines if line.level >= level]
    brokers.lines.clear()
    return found


class TestHowOften:
    def test_trouble_that_goes_on_is_told_after_pauses_that_grow_to_a_minute(self) -> None:
        told = Told()
        for second in range(3600):
            told.now_s = second
            told.log.trouble(ABOUT, "refused")
        times = len(told.lines)
        assert 60 <= times <= 66  # 0, 2, 6, 14, 30, 62, 122, and then once a minute
        assert told.lines[0].text == "refused"
        assert told.lines[-1].text == "refused (59 more like it since the last line)"

    def test_the_end_of_trouble_is_told_once_and_only_if_the_trouble_was(self) -> None:
        told = Told()
        told.log.over(ABOUT, "connected")
        told.log.trouble(ABOUT, "refused")
        told.now_s = 1.5
        told.log.over(ABOUT, "connected")
        told.log.over(ABOUT, "connected")
        assert told.texts() == ["refused", "connected after 1.5 s"]

    def test_what_comes_and_goes_is_bounded_too(self) -> None:
        told = Told()
        for tenth in range(36000):
            told.now_s = tenth / 10
            told.log.trouble(ABOUT, "refused")
            told.log.over(ABOUT, "connected")
        assert len(told.lines) < 140

    def test_trouble_that_passes_soon_is_not_told(self) -> None:
        told = Told()
        for second in range(5):
            told.now_s = second
            told.log.trouble(ABOUT, "no leader", after_s=5)
        told.log.over(ABOUT, "a leader")
        assert told.texts() == []
        for second in range(100, 106):
            told.now_s = second
            told.log.trouble(ABOUT, "no leader", after_s=5)
        assert told.texts() == ["no leader"]

    def test_trouble_that_was_not_heard_of_for_a_minute_is_new(self) -> None:
        told = Told()
        told.log.trouble(ABOUT, "no leader", after_s=5)
        told.now_s = 1000
        told.log.trouble(ABOUT, "no leader", after_s=5)
        assert told.texts() == []

    def test_the_number_of_things_is_bounded(self) -> None:
        told = Told()
        for number in range(10_000):
            told.log.trouble(("topic", number), "missing")
        assert len(told.log._pacing._troubles) <= 200

    def test_news_that_come_all_the_time_are_bounded(self) -> None:
        told = Told()
        for second in range(3600):
            told.now_s = second
            told.log.news(("assignment", "shop"), "has 3 partitions")
        assert len(told.lines) < 70
        assert {line.level for line in told.lines} == {INFO}


class TestConnections:
    def test_a_broker_that_refuses_is_told_at_once_and_its_return_too(self) -> None:
        brokers = ScriptedBrokers()
        brokers.unreachable.add(1)
        cluster_of(brokers).refresh()
        brokers.run()
        assert texts(brokers) == ["cannot connect to broker-1:9092: connection refused; next try in 0.1 s"]
        brokers.advance(1000)
        assert texts(brokers) == []
        brokers.unreachable.clear()
        brokers.advance(5000)
        [back] = texts(brokers, INFO)
        assert back.startswith("connected to broker-1:9092 after ")

    def test_a_broker_that_does_not_answer_is_told_after_a_second(self) -> None:
        brokers = ScriptedBrokers()
        brokers.answer("ApiVersions", lambda *_: None)
        cluster_of(brokers).refresh()
        brokers.advance(999)
        assert texts(brokers) == []
        brokers.advance(2)
        assert texts(brokers) == ["broker-1:9092 does not answer; waiting for 10 s at most"]
        brokers.advance(10_000)
        [line] = texts(brokers)
        assert line.startswith("cannot get an answer from broker-1:9092 within 10 s; next try in ")

    def test_a_connection_that_breaks_with_a_request_in_flight_is_told_and_an_idle_one_is_not(self) -> None:
        brokers = ScriptedBrokers()
        cluster = cluster_of(brokers)
        cluster.refresh()
        brokers.run()
        assert texts(brokers) == []
        brokers.drop_connections()
        brokers.advance(5000)
        assert texts(brokers) == []
        brokers.answer("ListGroups", DROP)
        cluster.ask(1, ListGroupsRequest()).on_done(lambda done: None)
        brokers.run()
        [line] = texts(brokers)
        assert line == "the connection to broker-1:9092 broke: reset by the test; next try in 0.1 s"

    def test_a_broker_that_answers_twice_is_told_though_nobody_waits_for_an_answer(self) -> None:
        brokers = ScriptedBrokers()
        cluster = cluster_of(brokers)
        cluster.refresh()
        brokers.run()
        brokers.answer("ListGroups", lambda _, version, __: 2 * encode_response(ListGroupsResponse(), version, 1))
        answers: list[object] = []
        cluster.ask(1, ListGroupsRequest()).on_done(lambda done: answers.append(done.error))
        brokers.run()
        assert answers == [None]
        assert brokers.open_connections == 1, "the one that the client came by"
        [line] = texts(brokers)
        assert line == (
            "broker-1:9092 broke the protocol: a response with correlation id 1 that nobody asked for; "
            "next try in 0.1 s"
        )
        brokers.answer("ListGroups", ListGroupsResponse())
        cluster.ask(1, ListGroupsRequest()).on_done(lambda done: answers.append(done.error))
        brokers.advance(200)
        assert answers == [None, None]

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "broker-1:9092 is not a Kafka broker: it speaks HTTP."),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "broker-1:9092 is not a Kafka broker: it says b'SSH-2.0-OpenSSH_9.2\\r\\n'."),
            (
                b"\x15\x03\x03\x00\x02\x02\x0a",
                "broker-1:9092 speaks TLS, and this client does not (security.protocol).",
            ),
        ],
    )
    def test_a_port_of_another_kind_is_told_at_once(self, said: bytes, told: str) -> None:
        brokers = ScriptedBrokers()
        brokers.answer("ApiVersions", lambda *_: said)
        refreshed = cluster_of(brokers).refresh()
        brokers.run()  # no time passes
        assert refreshed.error is not None
        assert str(refreshed.error).startswith(told)
        [line] = [line for line in brokers.lines if line.level == ERROR]
        assert line.text.startswith(told)

    def test_one_wrong_address_among_several_does_no_harm(self) -> None:
        brokers = ScriptedBrokers([1, 2, 3])
        brokers.answer("ApiVersions", lambda node_id, *_: b"HTTP/1.1 400" if node_id == 2 else brokers.versions())
        for _ in range(10):  # whichever is asked first
            refreshed = cluster_of(brokers).refresh()
            brokers.run()
            assert refreshed.error is None


class TestTopics:
    def test_a_topic_that_does_not_exist_is_told_and_that_it_came(self) -> None:
        brokers = ScriptedBrokers()
        cluster = cluster_of(brokers)
        cluster.add_topics(["ordres"])
        cluster.refresh()
        brokers.run()
        assert texts(brokers) == ["topic 'ordres' does not exist"]
        brokers.topics["ordres"] = 1
        cluster.refresh()
        brokers.run()
        assert texts(brokers, INFO) == ["topic 'ordres' is available after 0.0 s"]

    def test_a_topic_that_is_being_created_is_not_told(self) -> None:
        brokers = ScriptedBrokers()
        settings = read_settings(Scope.PRODUCER, {"bootstrap.servers": brokers.bootstrap}, {})
        cluster = Cluster(brokers.world, settings, creates_topics=True)
        cluster.add_topics(["orders"])
        cluster.refresh()
        brokers.run()
        assert texts(brokers) == []
        brokers.advance(3000)
        cluster.refresh()
        brokers.run()
        assert texts(brokers) == ["topic 'orders' does not exist"]

    def test_partitions_that_stay_without_a_leader_are_told(self) -> None:
        brokers = ScriptedBrokers([1], {"orders": 3})
        brokers.leaders["orders", 1] = (-1, 5)
        cluster = cluster_of(brokers)
        cluster.add_topics(["orders"])
        for _ in range(3):
            cluster.refresh()
            brokers.advance(1500)
        assert texts(brokers) == ["partitions of topic 'orders' have no leader: 1"]
        assert cluster.view.leader_of(TopicPartition("orders", 1)) is None


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in a program: commands that other tests have run put their own way of writing in place."""
    for thread in threading.enumerate():
        if thread.name == "ottla-log":  # of another test, with nothing more to do
            thread.join(10)
    monkeypatch.setattr(log_writer, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(log_writer, "_writer", log_writer._Writer())


@pytest.mark.usefixtures("writer")
class TestTheWriter:
    def test_a_line_is_a_record_of_the_logger_ottla_client(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "ottla")
        log_writer.write(Line(WARNING, ABOUT, "100 % refused"))
        log_writer.flush()
        [record] = caplog.records
        assert (record.name, record.levelname, record.getMessage()) == ("ottla.client", "WARNING", "100 % refused")
        assert record.__dict__["about"] == ABOUT

    def test_the_id_of_a_client_stands_before_its_lines(self, caplog: pytest.LogCaptureFixture) -> None:
        ClientLog(lambda: 0.0, log_writer.write, "orders-1").trouble(ABOUT, "refused")
        log_writer.flush()
        assert [record.getMessage() for record in caplog.records] == ["orders-1: refused"]

    @pytest.mark.parametrize("level", [DEBUG, INFO])
    def test_a_line_that_nobody_listens_to_starts_no_thread(self, caplog: pytest.LogCaptureFixture, level: int) -> None:
        caplog.set_level(logging.WARNING, "ottla.client")
        log_writer.write(Line(level, ABOUT, "connected"))
        assert not any(thread.name == "ottla-log" for thread in threading.enumerate())
        caplog.set_level(level, "ottla.client")
        log_writer.write(Line(level, ABOUT, "connected again"))
        log_writer.flush()
        assert [record.getMessage() for record in caplog.records] == ["connected again"]

    def test_levels_that_are_switched_off_for_all_are_not_listened_to(self) -> None:
        logging.disable(WARNING)
        try:
            log_writer.write(Line(WARNING, ABOUT, "refused"))
            assert not any(thread.name == "ottla-log" for thread in threading.enumerate())
        finally:
            logging.disable(logging.NOTSET)

    def test_a_program_without_logging_has_it_imported_by_a_warning_alone(self) -> None:
        program = """if True:
        import sys, threading
        from ottla.client.client_log import INFO, WARNING, Line
        from ottla.client.io import log_writer

        assert "logging" not in sys.modules
        log_writer.write(Line(INFO, "one", "connected"))
        assert threading.active_count() == 1
        assert "logging" not in sys.modules
        log_writer.write(Line(WARNING, "one", "refused"))
        log_writer.flush(60)
        log_writer.write(Line(INFO, "one", "connected"))
        """
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "refused\n")

    def test_who_tells_waits_for_nobody_who_sets_levels(self) -> None:
        """Who makes handlers as a whole configuration says has the lock of `logging`, and may wait for the client."""
        logging.getLogger("ottla.client").setLevel(logging.NOTSET)  # what was known of levels is forgotten
        told = threading.Thread(target=log_writer.write, args=(Line(WARNING, ABOUT, "refused"),), daemon=True)
        with vars(logging)["_lock"]:
            told.start()
            told.join(10)
            assert not told.is_alive()
        log_writer.flush()

    def test_a_handler_may_wait_for_who_tells(self) -> None:
        """A handler that sends with the client that has something to tell wants the client's lock."""
        client_lock, written = threading.Lock(), threading.Event()

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                with client_lock:
                    written.set()

        logger, handler = logging.getLogger("ottla.client"), Handler()
        logger.addHandler(handler)
        try:
            with client_lock:
                log_writer.write(Line(WARNING, ABOUT, "refused"))
            assert written.wait(10)
        finally:
            logger.removeHandler(handler)

    def test_a_handler_that_raises_costs_its_line_alone(self) -> None:
        lines: list[str] = []

        def write(line: Line, at_s: float) -> None:
            lines.append(line.text)
            if line.text == "first":
                raise RuntimeError("no such disk")

        log_writer.write_by(write)
        log_writer.write(Line(WARNING, ABOUT, "first"))
        log_writer.write(Line(WARNING, ABOUT, "second"))
        log_writer.flush()
        assert lines == ["first", "second"]
