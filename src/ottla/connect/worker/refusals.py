"""What is refused, with the status and in the words of Kafka Connect 4.3.1's REST interface."""

from typing import Final

from ottla.connect.errors import ConnectError

NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)


class Refused(ConnectError):
    """A request that is answered with an error. `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def bad_request(message: str) -> Refused:
    return Refused(400, message)


def not_found(name: str) -> Refused:
    return Refused(404, f"Connector {name} not found")


def no_status(name: str) -> Refused:
    return Refused(404, f"No status found for connector {name}")


def no_task_status(name: str, task: int) -> Refused:
    return Refused(404, f"No status found for task {name}-{task}")


def unknown_connector(name: str) -> Refused:
    """As pause, resume and stop say it."""
    return Refused(404, f"Unknown connector {name}")


def nothing_to_restart(name: str) -> Refused:
    """As restarts say it."""
    return Refused(404, f"Unknown connector: {name}")


def unknown_task(name: str, task: int) -> Refused:
    return Refused(404, f"Unknown task: {name}-{task}")


def already_exists(name: str) -> Refused:
    return Refused(409, f"Connector {name} already exists")


def no_leader() -> Refused:
    return Refused(409, NO_LEADER)


def not_stopped(name: str) -> Refused:
    return bad_request(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
        f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
    )


def timed_out(what: str) -> Refused:
    return Refused(500, f"Request timed out. The worker is currently {what}.")
