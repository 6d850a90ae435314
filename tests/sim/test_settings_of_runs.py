"""What runs tell their nodes has an effect: a setting that no node knows would be passed over in silence."""

import pytest

from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.testing.sim.run_plan import draw_plan
from ottla.testing.sim.run_profiles import PROFILES

SEEDS = range(8)


@pytest.mark.parametrize("profile", PROFILES)
def test_nodes_know_every_setting_of_a_run(profile: str) -> None:
    for seed in SEEDS:
        settings = draw_plan(seed, PROFILES[profile].nodes, 1_000, profile).settings
        for node_id in range(1, settings.nodes + 1):
            assert parse(Scope.BROKER, settings.properties(node_id)).warnings == ()
