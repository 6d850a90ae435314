"""A request that is handled in parts: the steps for one of very many entries.

The handler of the API is called with one part after the other, as if each were a request. It may answer a part at once
or later, and may pause the connection: then the next part waits, as the next request would. A crash, or a client that
goes, may leave some parts done and others not.
"""

from collections.abc import Callable
from functools import partial

from ottla.apis.description import Division
from ottla.base.errors import RemoteProtocolError
from ottla.runtime.large_requests.joined import JoinedAnswers
from ottla.runtime.large_requests.parts import divided
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.request import ClientConnection, Handler, RequestContext, Respond
from ottla.wire.message import Message


class _Line:
    """What the parts take for their connection: what waits for it to be resumed is the next part."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._callback: Callable[[], None] | None = None

    def stand_in(self) -> ClientConnection:
        client = self._client
        return ClientConnection(
            client.connection_id,
            client.listener,
            client.client_host,
            client.principal,
            client.software_name,
            client.software_version,
            line=self,
        )

    def when_over(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def on_paused(self) -> None:
        """The next part is not begun before it is resumed: see `handle_in_parts`."""

    def on_resumed(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    def hang_up(self, problem: RemoteProtocolError) -> None:
        self._client.hang_up(problem)


def handle_in_parts(
    division: Division, handle: Handler, context: RequestContext, request: Message, respond: Respond
) -> Steps:
    """`respond` is called once all parts are answered, by the step that is last or by what answers the last part."""
    line = _Line(context.connection)
    client = line.stand_in()
    of_parts = RequestContext(
        context.api_key, context.api_version, context.correlation_id, context.client_id, client, context.received_s
    )
    joined = JoinedAnswers(division)
    begun, is_answered, are_all_begun = 0, False, False

    def answered(place: int, response: Message | None) -> None:
        nonlocal is_answered
        joined.answer(place, response)
        if not is_answered and (are_all_begun or joined.is_refused) and joined.is_whole(begun):
            is_answered = True
            respond(joined.response)

    for part in divided(division, request):
        if part is None:
            yield None
            continue
        begun += 1
        handle(of_parts, part, partial(answered, begun - 1))
        if is_answered:
            return
        yield line if client.is_paused else None
    are_all_begun = True
    if joined.is_whole(begun):
        is_answered = True
        respond(joined.response)
