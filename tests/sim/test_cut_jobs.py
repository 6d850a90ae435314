"""Jobs of disk threads are cut into their calls: others come in between, as chance decides."""

from collections.abc import Callable
from random import Random

from ottla.log.files import replace_file
from ottla.log.leader_epochs import LeaderEpochs
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.hosts.stepped_thread import SteppedLock, SteppedThread, running, use_stepped_locks
from ottla.testing.sim.simulated_workers import Cutting, SimulatedWorkers
from ottla.testing.step_timers import Agenda, StepTimers

SEEDS = range(40)


class Scene:
    """Disk threads that pause at every call, and a disk whose calls are noted in order."""

    def __init__(self, seed: int) -> None:
        self.agenda = Agenda(FixedClock())
        self.workers = SimulatedWorkers(StepTimers(self.agenda.clock, self.agenda), Random(seed))
        self.workers._cutting = Cutting(1.0, 0.001)
        self.disk = MemoryDisk()
        self.disk.make_dirs("/data")
        self.disk.on_call = self.workers.on_call
        self.done: list[str] = []
        self.problems: list[Exception] = []

    def job(self, name: str, key: str | None = None) -> None:
        def write() -> None:
            for number in range(3):
                replace_file(self.disk, f"/data/{name}", b"%d" % number)
                self.done.append(name)

        self.workers.run(write, lambda result: None, self.problems.append, key=key)

    def run(self, steps: int = 10_000) -> None:
        for _ in range(steps):
            if not self.agenda.fire_next():
                return


def orders(jobs: Callable[[Scene], None]) -> set[str]:
    """Those in which things were done, over many seeds."""
    found = set()
    for seed in SEEDS:
        scene = Scene(seed)
        jobs(scene)
        scene.run()
        assert not scene.problems
        found.add("".join(scene.done))
    return found


def test_jobs_come_between_the_calls_of_others() -> None:
    def jobs(scene: Scene) -> None:
        scene.job("a")
        scene.job("b")

    assert len(orders(jobs)) > 5


def test_jobs_of_one_key_do_not() -> None:
    def jobs(scene: Scene) -> None:
        scene.job("a", key="log")
        scene.job("b", key="log")

    assert orders(jobs) == {"aaabbb"}


def test_the_loop_comes_between_the_calls_of_a_job() -> None:
    def jobs(scene: Scene) -> None:
        scene.job("a")
        for number in range(3):
            scene.agenda.call_at(1000 * (number + 1), lambda: scene.done.append("L"))

    assert {"LLaLaa", "LaLLaa"} <= orders(jobs)


def test_jobs_go_on_while_the_loop_calls_the_disk() -> None:
    def at_once(scene: Scene) -> None:
        for number in range(100):
            replace_file(scene.disk, "/data/loop", b"%d" % number)
        scene.done.append("L")

    def jobs(scene: Scene) -> None:
        scene.job("a")
        scene.agenda.call_at(2500, lambda: at_once(scene))

    assert "aaaL" in orders(jobs)


def test_the_same_seed_has_the_same_order() -> None:
    def done(seed: int) -> list[str]:
        scene = Scene(seed)
        for name in "abcdef":
            scene.job(name)
        scene.run()
        return scene.done

    assert [done(seed) for seed in SEEDS] == [done(seed) for seed in SEEDS]


def test_two_that_write_one_file_without_a_lock_are_found() -> None:
    problems = []
    for seed in SEEDS:
        scene = Scene(seed)
        scene.job("a")
        scene.job("a")
        scene.run()
        problems += scene.problems
    assert any(isinstance(problem, FileNotFoundError) for problem in problems)


def test_a_process_that_is_killed_makes_no_call_any_more() -> None:
    for seed in SEEDS:
        scene = Scene(seed)
        scene.job("a")
        scene.run(steps=5)
        before = scene.disk.files()
        scene.workers.close()
        scene.run()
        assert scene.disk.files() == before
        assert not scene.done
        assert not scene.problems


def test_a_sync_that_is_over_does_not_cover_what_is_written_before_its_thread_goes_on() -> None:
    disk = MemoryDisk()
    file = disk.open("/a", create=True)
    disk.on_call = lambda operation: file.write_at(0, b"late") if operation == "after sync file" else None
    file.write_at(0, b"soon")
    file.sync()
    assert {disk.survivor(Random(seed)).files().get("/a") for seed in SEEDS} > {b"soon", b"late"}


class Holder:
    """A function that pauses while it has a lock."""

    def __init__(self) -> None:
        self.lock = SteppedLock()
        self.thread = SteppedThread(self._hold)

    def _hold(self) -> None:
        with self.lock:
            for _ in range(3):
                me = running()
                assert me is not None
                me.pause()


def test_the_loop_waits_for_a_lock_until_the_function_that_holds_it_lets_go() -> None:
    holder = Holder()
    holder.thread.resume()
    assert holder.lock.locked()
    with holder.lock:
        assert holder.thread.is_over


def test_a_function_waits_for_a_lock_of_the_loop() -> None:
    holder = Holder()
    with holder.lock:
        for _ in range(5):
            holder.thread.resume()
        assert not holder.thread.is_over
    while not holder.thread.is_over:
        holder.thread.resume()
    assert not holder.lock.locked()


def test_a_function_that_is_abandoned_lets_go_of_its_lock() -> None:
    holder = Holder()
    holder.thread.resume()
    holder.thread.abandon()
    assert holder.thread.is_over
    assert not holder.lock.locked()


def test_what_a_function_raises_is_kept() -> None:
    thread = SteppedThread(lambda: 1 // 0)
    thread.resume()
    assert isinstance(thread.problem, ZeroDivisionError)


def test_locks_of_the_product_are_stepped_in_a_simulation() -> None:
    use_stepped_locks()
    assert isinstance(LeaderEpochs(MemoryDisk(), "/data")._writing, SteppedLock)
