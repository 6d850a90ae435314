"""Disk threads without threads."""

import pytest

from ottla.testing.step_workers import StepWorkers


def test_a_job_is_done_where_it_is_given():
    told = []
    StepWorkers().run(lambda: 7, told.append)
    assert told == [7]


def test_while_they_are_held_jobs_wait():
    workers, told = StepWorkers(), []
    workers.hold()
    workers.run(lambda: 1, lambda one: workers.run(lambda: one + 1, told.append))
    workers.step()
    assert told == []
    assert (len(workers), workers.done) == (1, 1)
    workers.let_go()
    assert told == [2]
    workers.run(lambda: 3, told.append)
    assert told == [2, 3]


def test_a_failure_goes_to_its_callback_or_stops_the_test():
    workers, told = StepWorkers(), []
    workers.run(lambda: [][0], told.append, told.append)
    assert isinstance(told[0], IndexError)
    with pytest.raises(IndexError):
        workers.run(lambda: [][0], told.append)


def test_idle_is_told_when_the_last_job_is_done():
    workers, told = StepWorkers(), []
    workers.when_idle(lambda: told.append("at once"))
    workers.hold()
    workers.run(lambda: None, lambda _: told.append("done"))
    workers.when_idle(lambda: told.append("later"))
    workers.step()
    assert told == ["at once", "done", "later"]


def test_closing_forgets_what_waits():
    workers, told = StepWorkers(), []
    workers.hold()
    workers.run(lambda: told.append("worked"), told.append)
    workers.close()
    workers.let_go()
    workers.run(lambda: told.append("worked"), told.append)
    assert told == []
