"""UpdateFeatures 0-2 (KIP-584): the controller decides on levels, and the quorum raises kraft.version (KIP-853).

What else is in a request is committed before kraft.version is raised. A failover in between leaves that as it was; its
client asks again.
"""

from ottla.controller.committed_decisions import decide
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.features import KRAFT_VERSION
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.voter_changes import VoterChanges
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def update_features(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    request: UpdateFeaturesRequest = asked.request
    changes = server.replica.voter_changes if server.replica is not None else None
    levels = [one.max_version_level for one in request.feature_updates if one.feature == KRAFT_VERSION]
    if changes is None or not levels:
        decide(server, asked, then, failed)
        return
    level, before = levels[-1], -1

    def tell(controller: Controller) -> None:
        nonlocal before
        before = controller.kraft_version
        controller.context.kraft_upgrade_problem = changes.upgrade_problem(level)

    def decided(reply: UpdateFeaturesResponse) -> None:
        if reply.error_code or request.validate_only or level <= before:
            then(reply)
        else:
            _raise(changes, level, reply, then, failed)

    decide(server, asked, decided, failed, tell=tell)


def _raise(changes: VoterChanges, level: int, reply: UpdateFeaturesResponse, then: Then, failed: Failed) -> None:
    def done(error: ErrorCode, _message: str | None) -> None:
        if error is ErrorCode.NONE:
            then(reply)
        else:
            failed(error)

    changes.upgrade(level, done)
