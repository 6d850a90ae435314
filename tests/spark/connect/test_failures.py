"""What a failure in a process of Spark's tells the engine."""

from pathlib import Path

from ottla.client.errors import ProducerFenced, RequestTimedOut, TopicAuthorizationFailed
from ottla.connect.engine.failures import failure_in, is_retriable, packed
from ottla.connect.engine.run import load_run, new_run
from ottla.connect.errors import ConnectError, Retriable


def test_a_failure_comes_through_javas_text_with_its_trace(tmp_path: Path) -> None:
    run = new_run("c", "source", {}, {"ottla.connect.state.dir": str(tmp_path)})
    try:
        raise Retriable("the database is away")
    except Retriable as error:
        text = f"[PYTHON_ERROR] Failed: Traceback\n  RunFailed: {packed(error, run)}\n\tat org.apache.spark.Some.java"
    failure = failure_in(text)
    assert failure.retriable
    assert failure.trace.endswith("Retriable: the database is away\n")
    assert "Traceback" in failure.trace


def test_a_text_without_a_failure_of_ours_is_sparks_own_and_tried_again() -> None:
    failure = failure_in("Python worker exited unexpectedly (crashed)\n=== Streaming Query ===\nThread State: RUNNABLE")
    assert failure.retriable
    assert failure.trace.splitlines()[-1] == "Python worker exited unexpectedly (crashed)", (
        "as a trace of Python's ends"
    )
    assert "Thread State: RUNNABLE" in failure.trace


def test_secrets_are_in_no_trace_and_in_a_file_of_their_owners_only(tmp_path: Path) -> None:
    config = {"connector.class": "FileStreamSource", "producer.override.sasl.jaas.config": "password=tiger"}
    worker = {"ottla.connect.state.dir": str(tmp_path), "ssl.key.password": "swordfish"}
    run = new_run("c", "source", config, worker)
    failure = failure_in(str(packed(ConnectError("refused password=tiger, swordfish"), run)))
    assert "tiger" not in failure.trace
    assert "swordfish" not in failure.trace
    assert "tiger" not in repr(run)
    assert run.spec_path.stat().st_mode & 0o077 == 0
    assert load_run(str(run.spec_path)) == run


def test_what_may_pass_is_tried_again() -> None:
    for passing in (Retriable("x"), RequestTimedOut(), ProducerFenced(), ConnectionRefusedError(), TimeoutError()):
        assert is_retriable(passing), passing
    for lasting in (ConnectError("x"), TopicAuthorizationFailed(), ValueError(), KeyError()):
        assert not is_retriable(lasting), lasting


def test_a_new_start_has_nothing_of_the_older_ones(tmp_path: Path) -> None:
    worker = {"ottla.connect.state.dir": str(tmp_path)}
    first = new_run("a/b", "source", {}, worker)
    first.mark_running()
    second = new_run("a/b", "source", {}, worker)
    assert not Path(first.directory).exists()
    assert not second.is_marked_running
    assert first.id != second.id
    assert Path(second.directory).is_relative_to(tmp_path / "connector-a%2Fb")
    assert Path(new_run("..", "source", {}, worker).directory).resolve().is_relative_to(tmp_path)
