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
        self._denials = denials
        self._image = image
        self._node_settings = node_settings

    def rights(self, principal: str, host: str, api_key: int) -> Rights:
        return Rights(
            self.authorizer,
            self._denials,
            self._image,
            self._node_settings,
            principal,
            host,
            ApiKey(api_key).name,
        )

    def around(self, api_key: int, handler: Handler) -> Handler:
        """The handler of a broker's API, called with what its client may ask of it."""
        from ottla.broker.access.checks import CHECKS

        check = CHECKS.get(api_key, _refuse)
        return partial(self._handle, check, handler)

    def _handle(self, check: Check, handler: Handler, context: RequestContext, request: Any, respond: Respond) -> None:
        client = context.connection
        rights = self.rights(client.principal, client.client_host, context.api_key)
        check(rights, Question(request, context.api_version, respond, partial(handler, context), context))

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
        check(self.rights(*who, api_key), Question(request, version, respond, go_on))


def _refuse(_rights: Rights, question: Question) -> None:
    question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
