"""What a run is made of, all drawn from its seed: settings, faults, and the programs that use the cluster.

A plan is data. To repeat a run with less in it, leave faults or actors out: the others stay the same.
"""

from collections.abc import Collection
from random import Random
from typing import Final, NamedTuple

from ottla.testing.sim.cluster.cluster_settings import ClusterSettings, drawn_settings
from ottla.testing.sim.cluster.encryption import draw_encryption
from ottla.testing.sim.cluster.small_sizes import Sizes, draw_sizes
from ottla.testing.sim.faults.drawn_faults import draw_apart, draw_faults
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.network.links import Weather
from ottla.testing.sim.run_profiles import PROFILES, USUAL
from ottla.testing.sim.workloads.programs import PROGRAMS, SETTINGS, draw_programs

ACTORS: Final = PROGRAMS


class RunPlan(NamedTuple):
    seed: int
    settings: ClusterSettings
    weather: Weather
    duration_ms: int
    """Of the time in which faults happen."""
    faults: tuple[Fault, ...]
    actors: tuple[str, ...] = ACTORS
    profile: str = USUAL
    sizes: Sizes = Sizes()

    def only(self, faults: Collection[int] | None = None, actors: Collection[str] | None = None) -> "RunPlan":
        """The same with these faults alone; and with these actors, also such as the seed has not drawn."""
        return self._replace(
            faults=self.faults if faults is None else tuple(one for one in self.faults if one.number in faults),
            actors=self.actors if actors is None else tuple(actors),
        )

    def command(self) -> str:
        """What repeats this run."""
        words = ["ottla sim", f"--seed {self.seed}", f"--nodes {self.settings.nodes}"]
        words.append(f"--minutes {self.duration_ms / 60_000:g}")
        if self.profile != USUAL:
            words.append(f"--profile {self.profile}")
        whole = draw_plan(self.seed, self.settings.nodes, self.duration_ms, self.profile)
        if self.faults != whole.faults:
            words.append(f"--faults {','.join(str(fault.number) for fault in self.faults) or 'none'}")
        if self.actors != whole.actors:
            words.append(f"--actors {','.join(self.actors) or 'none'}")
        return " ".join(words)


def draw_plan(seed: int, nodes: int, duration_ms: int, profile: str = USUAL) -> RunPlan:
    chance = Random(f"{seed} plan" if profile == USUAL else f"{seed} plan {profile}")
    drawn = PROFILES[profile]
    settings = drawn_settings(chance, nodes)
    sizes = draw_sizes(Random(f"{seed} sizes"))
    settings = settings._replace(
        more={**settings.more, **SETTINGS, **sizes.settings, **drawn.settings},
        most_controllers=drawn.most_controllers,
        isolated=drawn.isolated,
        flushes=settings.flushes if drawn.flushes is None else drawn.flushes,
        dynamic_voters=drawn.dynamic_voters,
        encryption=draw_encryption(Random(f"{seed} encryption {profile}"), nodes),
    )
    weather = Weather(
        spread_us=chance.choice(drawn.spread_us),
        loss=chance.choice((0.0, 0.0, 0.01)),
        bytes_per_us=chance.choice((10, 100)),
    )
    faults = draw_faults(chance, drawn, nodes, duration_ms)
    faults += draw_apart(Random(f"{seed} apart {profile}"), drawn, len(faults), nodes, duration_ms)
    programs = draw_programs(Random(f"{seed} programs {profile}"))
    return RunPlan(seed, settings, weather, duration_ms, faults, (*programs, *drawn.more_actors), profile, sizes)
