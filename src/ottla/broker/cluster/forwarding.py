"""Passes on to the active controller what only it can answer (KIP-590): a client asks any broker.

These are the APIs whose rows say `FORWARDED` (`ottla.apis.table`).

Left out: policies, which are Java classes.
"""

from typing import Any

from ottla.apis.error_responses import refusal_response
from ottla.runtime.channels import Caller, ControllerChannel
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode


def handle_forwarded(controller: ControllerChannel, context: RequestContext, request: Any, respond: Respond) -> None:
    """Responds with the controller's reply, or with the reason why there is none."""
    version = context.api_version

    def failed(error: ErrorCode) -> None:
        respond(refusal_response(request, version, error))

    controller.ask(request, version, Caller.of(context.connection, context.client_id), respond, failed)
