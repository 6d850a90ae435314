"""What stands before the handlers of a node that has an authorizer.

There is one gate for the broker and the controller of a process. It looks a request's check up, and the check hands
the request on, all of it, a part of it, or nothing. A check that raises has handed nothing on: the request fails.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ottla.broker.access.denials import Denials
from ottla.broker.access.rights import Check, GoOn, Question, Rights
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.security.acls.authorizer import Authorizer
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode


class Gate:
    def __init__(
        self, authorizer: Authorizer, denials: Denials, image: MetadataImage, node_settings: NodeSettings
    ) -> None:
        self.authorizer = authorizer
        self.denials = denials
        self.image = image
        self.node_settings = node_settings

    def around(self, api_key: int, handler: Handler) -> Handler:
        """The handler of a broker's API, called with what its client may ask of it."""
        from ottla.broker.access.checks import CHECKS

        check: Check = CHECKS.get(api_key, _refuse)
        api = ApiKey(api_key).name

        def handle(context: RequestContext, request: Any, respond: Respond) -> None:
            client = context.connection
            rights = Rights(self, client.principal, client.client_host, api)
            check(rights, Question(request, context.api_version, respond, partial(handler, context), context))

        return handle

    def check(
        self,
        checks: Mapping[int, Check],
        who: tuple[str, str],
        request: Any,
        version: int,
        respond: Respond,
        go_on: GoOn,
    ) -> None:
        """The same for a request without a connection of its own."""
        api_key = request._schema.api_key
        check = checks.get(api_key, _refuse)
        check(Rights(self, *who, ApiKey(api_key).name), Question(request, version, respond, go_on))


def _refuse(_rights: Rights, question: Question) -> None:
    question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
