"""Passes on to the active controller what only it can answer (KIP-590): a client asks any broker.

CreateTopics 2-7, DeleteTopics 1-6, CreatePartitions 0-3, ElectLeaders 0-2 (KIP-460), AlterPartitionReassignments 0-1
and ListPartitionReassignments 0 (KIP-455), AlterClientQuotas 0-1 (KIP-546), AlterUserScramCredentials 0 (KIP-554),
CreateAcls 1-3 and DeleteAcls 1-3 (KIP-140),
UpdateFeatures 0-2 (KIP-584), UnregisterBroker 0 and DescribeQuorum 0-2 (KIP-595) are answered by `ottla.controller`.

Left out: policies, which are Java classes.
"""

from typing import Any

from ottla.runtime.channels import Caller, ControllerChannel
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.error_responses import refusal_response
from ottla.wire.errors import ErrorCode


def handle_forwarded(controller: ControllerChannel, context: RequestContext, request: Any, respond: Respond) -> None:
    """Responds with the controller's reply, or with the reason why there is none."""
    version = context.api_version

    def failed(error: ErrorCode) -> None:
        respond(refusal_response(request, version, error))

    controller.ask(request, version, Caller.of(context.connection, context.client_id), respond, failed)
