"""What an option is: a row with the name and defaults of Kafka's, and help in our words."""

from typing import Final, NamedTuple

from ottla import __version__

KAFKA_VERSION: Final = "4.3.1"
"""The release whose tools these are."""


class Option(NamedTuple):
    """One option. Without a `kind` it is a flag; `about` says what its argument is."""

    name: str
    help: str
    kind: str = ""  # how help names the argument's type: String, Integer, Long, or the values that it may have
    about: str = ""
    default: str | None = None
    is_optional: bool = False  # it may stand without its argument
    is_required: bool = False  # the reader of the command line insists on it, and help marks it
    separator: str = ""  # an argument is as many values as this divides it into
    why_not: str = ""  # set for an option that is known and not supported: the reason


HELP: Final = Option("help", "Print how the tool is used.")
VERSION: Final = Option("version", "Print the version of Kafka whose tool this is.")


SERVERS_VARIABLE: Final = "OTTLA_BOOTSTRAP_SERVERS"
"""In the environment: the brokers of all commands and tools that are not given others."""
SERVERS: Final = "bootstrap-server"
TIMEOUT: Final = Option(
    "timeout", "How long to try to reach the cluster, and for answers. Kafka's own tool has no such option.", "Seconds"
)


class Program(NamedTuple):
    """A tool as its help shows it."""

    name: str
    summary: str
    options: tuple[Option, ...]

    @property
    def by_name(self) -> dict[str, Option]:
        found = {option.name: option for option in (*self.options, HELP, VERSION)}
        if SERVERS in found:
            found.setdefault(TIMEOUT.name, TIMEOUT)
        return found


def version_line() -> str:
    """Kafka's version comes first, as scripts expect it."""
    return f"{KAFKA_VERSION} (ottla {__version__})"
