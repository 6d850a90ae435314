"""What stands before the handlers of a node that has an authorizer.

There is one gate for the broker and the controller of a process. It looks a request's check up, and the check hands
the request on, all of it, a part of it, or nothing. A check that raises has handed nothing on: the request fails.
"""

from functools import partial
from typing import Any

from ottla.apis.description import Answer, ServedApi
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.security.acls.authorizer import Authorizer
from ottla.serving.access.check_shapes import find_check
from ottla.serving.access.denials import Denials
from ottla.serving.access.rights import Check, Proceed, Question, Rights
from ottla.serving.node_settings import NodeSettings


class Gate:
    def __init__(
        self, authorizer: Authorizer, denials: Denials, image: MetadataImage, node_settings: NodeSettings
    ) -> None:
        self.authorizer = authorizer
        self.denials = denials
        self.image = image
        self.node_settings = node_settings
        self._checks: dict[tuple[int, str], Check] = {}

    def around(self, row: ServedApi, answer: Answer, handler: Handler) -> Handler:
        """The handler of a connection's requests, called with what its client may ask of it."""
        check = self._find(row, answer)
        api = row.key.name

        def handle(context: RequestContext, request: Any, respond: Respond) -> None:
            client = context.connection
            rights = Rights(self, client.principal, client.client_host, api)
            check(rights, Question(request, context.api_version, respond, partial(handler, context), context))

        return handle

    def check(
        self,
        row: ServedApi,
        answer: Answer,
        who: tuple[str, str],
        request: Any,
        version: int,
        respond: Respond,
        proceed: Proceed,
    ) -> None:
        """The same for a request without a connection of its own."""
        check = self._find(row, answer)
        check(Rights(self, *who, row.key.name), Question(request, version, respond, proceed))

    def _find(self, row: ServedApi, answer: Answer) -> Check:
        key = row.key, answer.function
        check = self._checks.get(key)
        if check is None:
            check = self._checks[key] = find_check(row, answer)
        return check
