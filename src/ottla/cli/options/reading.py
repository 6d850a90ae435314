"""Words of a command line to values, by the rules of joptsimple as Kafka's tools set it up.

- `--name value` and `--name=value`; one hyphen does too (`-name value`). Names are not abbreviated.
- A flag ignores what stands after its `=`. An option that needs an argument takes the next word, whatever it is; one
  that may have an argument takes the next word unless that looks like an option. One that may have a number takes the
  next word if that is a number, also a negative one.
- After `--`, and where no option is, words are left over; Kafka's tools do not look at them.
- A value is converted when it is asked for, so a wrong number in an option that is not used is no error.
"""

import os
from collections.abc import Sequence

from ottla.base.errors import OttlaError
from ottla.cli.options.table import SERVERS, SERVERS_VARIABLE, TIMEOUT, Option, Program
from ottla.cli.text_tables import did_you_mean


class MissingOption(OttlaError):
    """An option that the reader of the command line insists on is not there: reported with the tool's help."""


class OptionError(OttlaError):
    """The command line cannot be read. Kafka's tools print this, most of them without the help."""


class Given:
    """What was given on the command line."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.is_empty = True
        self.in_order: list[tuple[str, str | None]] = []
        """Options as they came, for the few tools to which the order matters."""
        self._values: dict[str, list[str]] = {}
        self._options = program.by_name

    def add(self, option: Option, argument: str | None) -> None:
        self.in_order.append((option.name, argument))
        values = self._values.setdefault(option.name, [])
        if argument is not None:
            values += argument.split(option.separator) if option.separator else [argument]

    def __contains__(self, name: str) -> bool:
        assert name in self._options, f"{self.program.name} has no option {name}"
        return name in self._values

    def all(self, name: str) -> list[str]:
        """Every value of an option that may be repeated; its default if it was not given."""
        values = self._values.get(name, [])
        default = self._options[name].default
        return list(values) if values or default is None else [default]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        if len(values) > 1:
            raise OptionError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The value of an option that the tool has made sure of."""
        value = self.get(name)
        assert value is not None, f"{name} was neither required nor has it a default"
        return value

    def timeout_s(self) -> float | None:
        """What our own `--timeout` says; None where Kafka's tool has one that means another thing."""
        option = self._options.get(TIMEOUT.name)
        value = self.get(TIMEOUT.name) if option is TIMEOUT else None
        if value is None:
            return None
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < 1e6:
            raise OptionError(f"Cannot parse argument '{value}' of option timeout: it must be a number of seconds")
        return seconds

    def integer(self, name: str) -> int:
        value = self.get_integer(name)
        assert value is not None, f"{name} was neither required nor has it a default"
        return value

    def get_integer(self, name: str) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        bits = 31 if self._options[name].kind == "Integer" else 63
        try:
            number = int(value)
        except ValueError:
            raise OptionError(f"Cannot parse argument '{value}' of option {name}") from None
        if not -(2**bits) <= number < 2**bits or value != value.strip() or "_" in value:
            raise OptionError(f"Cannot parse argument '{value}' of option {name}")
        return number


def read(program: Program, words: Sequence[str]) -> Given:
    """Raises `OptionError` for an option that the program does not have, or does not support."""
    options = program.by_name
    given = Given(program)
    given.is_empty = not words
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            break
        if not _looks_like_option(word):
            continue
        name, equals, argument = word.lstrip("-").partition("=") if word.startswith("--") else _short(word, options)
        option = options.get(name)
        if option is None:
            raise OptionError(f"{name} is not a recognized option{did_you_mean(word.lstrip('-'), options)}")
        if option.why_not:
            raise OptionError(f"Option {name} is not supported: {option.why_not}")
        given.add(option, _argument(option, argument if equals else None, rest))
    _use_environment(given, options)
    missing = [option.name for option in program.options if option.is_required and option.name not in given]
    if missing and "help" not in given and "version" not in given:
        raise MissingOption(f"Missing required option(s) [{', '.join(missing)}]")
    return given


def _use_environment(given: Given, options: dict[str, Option]) -> None:
    """Brokers that nobody named: those of the environment, as for the commands of `ottla`."""
    others = [name for name in (SERVERS, "bootstrap-controller", "broker-list") if name in options and name in given]
    servers = os.environ.get(SERVERS_VARIABLE)
    if servers and SERVERS in options and not others and not given.is_empty:
        given.add(options[SERVERS], servers)


def _argument(option: Option, inline: str | None, rest: list[str]) -> str | None:
    if not option.kind:
        return None
    if inline is not None and (inline or not option.is_optional):
        return inline
    if option.is_optional:
        return rest.pop() if rest and _may_be_argument(option, rest[-1]) else None
    if not rest:
        raise OptionError(f"Option {option.name} requires an argument")
    return rest.pop()


def _short(word: str, options: dict[str, Option]) -> tuple[str, str, str]:
    """One hyphen before a whole name; otherwise the complaint is about the first letter."""
    name, equals, argument = word[1:].partition("=")
    if name == "b" and name not in options and SERVERS in options:
        name = SERVERS  # as in the commands of `ottla`
    return (name, equals, argument) if name in options else (word[1], "", "")


def _may_be_argument(option: Option, word: str) -> bool:
    if option.kind in ("Integer", "Long"):
        return word.removeprefix("-").isdecimal()
    return not _looks_like_option(word)


def _looks_like_option(word: str) -> bool:
    return word.startswith("-") and word != "-"
