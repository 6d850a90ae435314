"""Which faults a seed has, and when."""

from random import Random

from ottla.testing.sim.faults.fault import BEFORE_ALL, Fault
from ottla.testing.sim.faults.fault_kinds import KINDS
from ottla.testing.sim.run_profiles import Profile

_LARGEST_AMOUNT = 600_000
_WHILE_STARTING = 0.5
_MOST_APART = 4


def draw_faults(chance: Random, profile: Profile, nodes: int, duration_ms: int) -> tuple[Fault, ...]:
    """Some seconds apart; a seed may be calm or stormy, and has kinds that it prefers."""
    between_ms = chance.choice(profile.between_ms)
    names = sorted(profile.faults)
    weights = [profile.faults[name] * chance.choice((0, 1, 1, 3)) for name in names]
    if not any(weights):
        return ()
    faults: list[Fault] = []
    if profile.while_starting and chance.random() < _WHILE_STARTING:
        faults.append(Fault(0, BEFORE_ALL, profile.while_starting, 1, KINDS[profile.while_starting].longest_ms, 0))
    at_ms = chance.randrange(between_ms)
    while at_ms < duration_ms:
        (kind,) = chance.choices(names, weights)
        faults.append(_draw(chance, profile, len(faults), at_ms, kind, nodes))
        at_ms += 1 + int(chance.expovariate(1.0) * between_ms)
    return tuple(faults)


def draw_apart(chance: Random, profile: Profile, first: int, nodes: int, duration_ms: int) -> tuple[Fault, ...]:
    """Those of `Profile.apart`, at any moment. Their numbers begin with `first`."""
    faults: list[Fault] = []
    for kind, share in profile.apart.items():
        if chance.random() < share:
            for _ in range(chance.randrange(_MOST_APART) + 1):
                at_ms = chance.randrange(duration_ms)
                faults.append(_draw(chance, profile, first + len(faults), at_ms, kind, nodes))
    return tuple(faults)


def _draw(chance: Random, profile: Profile, number: int, at_ms: int, kind: str, nodes: int) -> Fault:
    node_id = chance.randrange(nodes) + 1
    for_ms = max(chance.randrange(KINDS[kind].longest_ms * profile.lasting) + 1, KINDS[kind].shortest_ms)
    return Fault(number, at_ms, kind, node_id, for_ms, chance.randrange(-_LARGEST_AMOUNT, _LARGEST_AMOUNT))
