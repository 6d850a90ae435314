"""Options of connectors that come from elsewhere: one that we lack is refused by name, not ignored."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.config.setting import Setting
from ottla.connect.options import InvalidOption

_OF_ALL: Final = ("name", "connector.class", "tasks.max", "topics", "topics.regex", "transforms", "predicates")
_PREFIXES: Final = (
    *("transforms.", "predicates.", "errors.", "key.converter", "value.converter", "header.converter", "consumer."),
    *("config.", "ottla.", "producer.", "offsets.", "exactly.once.", "transaction.", "tasks.", "initial."),
    "topic.creation.",
)
_LISTED: Final = "; it has "


def setting_of(problem: str, rows: Sequence[Setting], otherwise: str) -> str:
    """The setting that a message is about: the longest name in it, the first of those that it begins with."""
    problem = problem.partition(_LISTED)[0]
    names = sorted((row.name for row in rows if row.name in problem), key=len, reverse=True)
    first = [name for name in names if problem.startswith(name)]
    return (first or names or [otherwise])[0]


def refuse_unknown(
    class_name: str, rows: Sequence[Setting], config: Mapping[str, str], ignored: tuple[str, ...] = ()
) -> None:
    """Raises `InvalidOption`. `ignored` are beginnings of names that mean nothing here."""
    known = {row.name for row in rows}
    for name in sorted(config):
        if name not in known and name not in _OF_ALL and not name.startswith((*_PREFIXES, *ignored)):
            raise InvalidOption(f"{class_name} has no option {name} here{_LISTED}{', '.join(sorted(known))}")
