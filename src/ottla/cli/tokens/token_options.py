"""The options of kafka-delegation-tokens, and which of them go together."""

from typing import Final

from ottla.cli.options.checks import UsageError, refuse, require
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program

PROGRAM: Final = Program(
    "kafka-delegation-tokens",
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    (
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String"),
        Option(
            "command-config",
            "REQUIRED: Properties file with settings of the admin. Only a client that has said who it is may ask for "
            "tokens.",
            "String",
        ),
        Option("create", "Create a token. Others that may renew it: --renewer-principal."),
        Option("renew", "Renew a token, for --renew-time-period."),
        Option("expire", "End a token, after --expiry-time-period."),
        Option(
            "describe",
            "Describe the tokens of these owners and renewers (--owner-principal), else all that you own or may "
            "describe.",
        ),
        Option("owner-principal", "Whose token it is, as User:alice.", "String", is_optional=True),
        Option("renewer-principal", "Who else may renew the token, as User:alice.", "String", is_optional=True),
        Option(
            "max-life-time-period",
            "How long the token may live at most, in milliseconds. -1: the brokers' delegation.token.max.lifetime.ms.",
            "Long",
            is_optional=True,
        ),
        Option(
            "renew-time-period",
            "For how long the token is renewed, in milliseconds. -1: the brokers' delegation.token.expiry.time.ms.",
            "Long",
            is_optional=True,
        ),
        Option(
            "expiry-time-period",
            "After how long the token ends, in milliseconds. -1: at once.",
            "Long",
            is_optional=True,
        ),
        Option("hmac", "The HMAC of the token.", "String", is_optional=True),
    ),
)

ACTIONS: Final = ("create", "renew", "expire", "describe")
_NEEDED: Final = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
}
_REFUSED: Final = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("max-life-time-period", "hmac", "renew-time-period", "expiry-time-period"),
}


def check(given: Given) -> str:
    """Raises `UsageError` for options that do not go together; returns the action."""
    actions = [action for action in ACTIONS if action in given]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    [action] = actions
    require(given, "bootstrap-server", "command-config")
    require(given, *_NEEDED.get(action, ()))
    refuse(given, action, _REFUSED[action])
    return action
