"""The fuzz in the simulator: without a finding, and the same again from its seed."""

import pytest

from tests.property.node.simulated_fuzz import Found, SimulatedFuzz

FOUND: list[int] = []


def fuzz(seed: int, requests: int) -> SimulatedFuzz:
    run = SimulatedFuzz(seed)
    run.run(requests)
    print(f"seed {seed}: {run.sent} requests, {run.answered} answered")
    assert run.answered > requests // 2, "hardly anything was answered"
    return run


@pytest.mark.parametrize("seed", [*FOUND, 1])
def test_extreme_requests(seed: int) -> None:
    fuzz(seed, 1000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2020))
def test_many_extreme_requests(seed: int) -> None:
    fuzz(seed, 10_000)


def test_a_run_is_the_same_again() -> None:
    first, second = fuzz(3, 400), fuzz(3, 400)
    assert first.simulation.transcript.lines == second.simulation.transcript.lines


def test_a_fault_is_found_and_found_again_at_the_same_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would hold for ever."""
    from ottla.broker.groups import heartbeat

    def breaks(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(heartbeat, "handle_heartbeat", breaks)
    found = []
    for _ in range(2):
        with pytest.raises(Found, match=r"seed 4, request (.|\n)*Heartbeat(.|\n)*a bug") as finding:
            fuzz(4, 2000)
        found.append(str(finding.value).partition(":")[0])
    assert found[0] == found[1]
