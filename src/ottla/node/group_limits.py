"""Whether a node's settings of groups lie within the limits that the same node sets: else Kafka does not start."""

from ottla.config.parse import ConfigError, Problem, Values
from ottla.machines.metadata.settings.group_settings import GROUP_LIMITS

_KINDS = ("consumer", "share", "streams")


def check_group_limits(values: Values) -> None:
    """Raises `ConfigError` that names each setting that does not fit."""
    problems = [
        problem for name, limits in GROUP_LIMITS.items() for problem in _beyond(values, f"group.{name}", *limits)
    ]
    for kind in _KINDS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if values.integer(heartbeat) >= values.integer(session):
            problems.append(_problem(values, heartbeat, "less than", session))
    if problems:
        raise ConfigError(tuple(problems))


def _beyond(values: Values, name: str, lowest: str | None, highest: str) -> list[Problem]:
    problems = []
    if lowest is not None and values.integer(highest) < values.integer(lowest):
        problems.append(_problem(values, highest, "at least", lowest))
    if lowest is not None and values.integer(name) < values.integer(lowest):
        problems.append(_problem(values, name, "at least", lowest))
    if values.integer(name) > values.integer(highest):
        problems.append(_problem(values, name, "no more than", highest))
    return problems


def _problem(values: Values, name: str, relation: str, other: str) -> Problem:
    return Problem(name, str(values.integer(name)), f"{relation} {other} ({values.integer(other)})")
