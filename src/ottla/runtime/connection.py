"""One client's connection: bytes in, requests to the handler, replies out in order.

Theory of operation. A connection joins three: the exchange (`ottla.wire.exchange`: bytes to frames, replies in order),
the transport that carries its bytes, and the session (who speaks, and how much may be under way). All connections of a
server receive into one large scratch buffer, and whole requests in it are decoded and handled where they lie.

Requests are handled as they come, several of one connection before the first is answered. Replies leave together: those
that a turn of the network brings about at its end, so that clients are not woken one by one. A connection that is the
only one in its turn sends as soon as its own requests are handled.

A client that has too much under way is not read from until it has less; nor is one that a handler pauses, or one that
is throttled by its quotas (`metering`). What it has sent already stays with the frames.

A request of very many entries is decoded and handled in steps, with others in between: see `large_requests`.

One file because what is received and what is sent stop and start each other.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Lent, give_back
from ottla.base.ports import Buffer, Transport
from ottla.runtime.attribution import WORK
from ottla.runtime.large_requests.large_frames import decode_large
from ottla.runtime.large_requests.slow_lane import Steps, and_then
from ottla.runtime.outbox import OnDiskThread, Outbox, Region
from ottla.runtime.pending_request import MOST_BYTES_TO_REPEAT, GivenReply, PendingRequest
from ottla.runtime.request import ClientConnection, Handler, RequestContext, Respond
from ottla.runtime.session import MAX_UNANSWERED, MAX_UNSENT_BYTES, Session
from ottla.wire.exchange.frames import Frames
from ottla.wire.exchange.replies import ReplyRow
from ottla.wire.frame import UnsupportedRequestError, request_reader
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.server import Server

# After so long with one client's requests its next ones wait: for other clients that are ready, or for the node's own
# timers and disk threads.
_STEP_AMONG_OTHERS_S = 0.001
_STEP_S = 0.005
# Replies that are together no larger are sent as one.
_LITTLE_BYTES = 64 << 10
# A smaller frame is decoded in a few milliseconds, whatever is in it.
_LARGE_FRAME_BYTES = 256 << 10
_OLDEST = 0

_read_request = request_reader(PendingRequest)


class Connection:
    """Owned by its server. `on_readable` and `on_writable` are the network's callbacks."""

    __slots__ = (
        "_awaits_writable",
        "_blank",
        "_frames",
        "_is_corked",
        "_is_reading",
        "_is_sending",
        "_is_to_send",
        "_outbox",
        "_replies",
        "_transport",
        "server",
        "session",
    )

    def __init__(self, server: "Server", transport: Transport, client: ClientConnection) -> None:
        self.server = server
        self.session = Session(client, server.now_s())
        self._transport = transport
        self._frames = Frames(server.limits.max_request_bytes, "socket.request.max.bytes")
        self._replies: ReplyRow[PendingRequest | GivenReply] = ReplyRow()
        self._outbox = Outbox()
        self._is_corked = False
        self._is_reading = False
        self._is_to_send = False
        self._is_sending = False
        self._awaits_writable = False
        self._blank = PendingRequest.blank(self)
        client.line = self
        self.resume_reading()

    # In

    def on_readable(self) -> None:
        server = self.server
        self.session.active_s = server.now_s()
        self._is_corked = True
        try:
            if self._frames.partial is not None:
                self._receive_rest()
            elif count := self._transport.receive_into(server.scratch):
                try:
                    self._frames.take(server.lent_scratch[:count], self._handle)
                finally:
                    give_back(server.scratch, count)
            else:
                self.close()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        except RemoteProtocolError as problem:
            self.hang_up(problem)
        except Exception as problem:
            self.break_off(problem)
        self._end_step()

    def _receive_rest(self) -> None:
        """Receives no further than the request's end, so that nothing is left over."""
        with self._frames.room() as room:
            count = self._transport.receive_into(room)
        if count:
            self._frames.fill(count, self._handle)
        else:
            self.close()

    def _take_waiting(self) -> None:
        """Goes on with requests that had been received when the client had to wait."""
        if not self._is_reading:
            return
        self.session.active_s = self.server.now_s()
        self._is_corked = True
        try:
            self._frames.take_waiting(self._handle)
        except RemoteProtocolError as problem:
            self.hang_up(problem)
        except Exception as problem:
            self.break_off(problem)
        self._watch()
        self._end_step()

    def break_off(self, problem: Exception) -> None:
        """Something went wrong outside any request: there is nothing to answer with."""
        self.server.on_fault(self.session.client, problem)
        self.close()

    def _end_step(self) -> None:
        """The requests that were there have been handled: the replies that are ready leave, together."""
        self._is_corked = False
        replies = self._replies
        if replies and replies[0].parts is not None:
            if self.server.network.is_crowded:
                self._send_later()
                return
            try:
                self.send_ready()
            except Exception as problem:
                self.break_off(problem)
            self.server.count_answered()

    def _handle(self, frame: Lent | memoryview) -> bool:
        """One request. Returns whether the next may be handled, too."""
        size = len(frame)
        try:
            if size <= _LARGE_FRAME_BYTES:
                self.take(_read_request(self._blank, frame))
            elif (decoded := decode_large(self, frame)) is None:
                self._pause_reading()
            else:
                self.take(PendingRequest(self, *decoded, size))
        except UnsupportedRequestError as problem:
            self.take(PendingRequest(self, problem.header, None, size), self._answer_unsupported)
        return self._is_reading

    def take(self, request: PendingRequest, handle: Handler | None = None) -> None:
        """Hands a request on. `handle` answers it if it is given."""
        server, session, message = self.server, self.session, request.message
        request.received_s = session.active_s
        self._replies.append(request)
        if server.counts_queued:
            server.received(request.size)
        if request.size > MOST_BYTES_TO_REPEAT:
            request.message = None
        WORK.request = request
        try:
            (handle or server.handle)(request, message, request.respond)  # type: ignore[arg-type]
        except Exception as problem:
            request.fail(problem)
        WORK.request = None
        if server.metering is not None and request.parts is None:
            request.on_left_waiting()
        server.handled_s = now_s = server.now_s()
        if (
            now_s - session.active_s > _STEP_AMONG_OTHERS_S
            or len(self._replies) >= MAX_UNANSWERED
            or session.unsent_bytes > MAX_UNSENT_BYTES
            or server.is_full
        ):
            self._maybe_pause()

    def _answer_unsupported(self, request: RequestContext, _message: Message, respond: Respond) -> None:
        """There is only one version that the client surely knows: the oldest."""
        assert isinstance(request, PendingRequest)
        self.server.handle_unsupported(request, lambda reply: request.respond(reply, _OLDEST))

    def _maybe_pause(self) -> None:
        """Stops reading if the client has too much under way (see `session`), or others have to have their turn."""
        server, session = self.server, self.session
        if server.is_full or len(self._replies) >= MAX_UNANSWERED or session.unsent_bytes > MAX_UNSENT_BYTES:
            self._pause_reading()
        elif server.handled_s - session.active_s > _STEP_S or server.network.is_crowded:
            self._pause_reading()
            server.network.at_end_of_turn(self.maybe_resume)

    def is_open(self) -> bool:
        return self.session.client.is_open

    def go_through(self, request: PendingRequest, steps: Steps, *, in_order: bool) -> None:
        """Does a request's work in the slow lane; in order, if the requests behind it are to wait for its end."""
        if in_order:
            self.session.client.pause()
            steps = and_then(steps, self.session.client.resume)
        self.server.lane.add(request, steps, self.is_open, request.drop)

    # Out

    def on_answered(self, request: PendingRequest, parts: Sequence[Buffer | Region]) -> None:
        """The request has its reply."""
        server = self.server
        server.answered.append(request)
        if server.counts_queued:
            server.no_longer_queued(request.size)
        for part in parts:
            if part.__class__ is not Region:
                self.session.unsent_bytes += len(part)  # type: ignore[arg-type]
        if not self._is_corked and not self._is_to_send:
            replies = self._replies
            if replies and replies[0].parts is not None:
                self._is_to_send = True
                server.send_later(self)

    def _send_later(self) -> None:
        if not self._is_to_send:
            self._is_to_send = True
            self.server.send_later(self)

    def send_ready(self) -> None:
        """Sends the replies whose turn has come."""
        self._is_to_send = False
        if not self.session.client.is_open:
            return
        is_metered = self.server.metering is not None
        began_s = self.server.now_s() if is_metered else 0.0
        parts = self._replies.take_ready()
        if len(parts) > 1 and self.session.unsent_bytes <= _LITTLE_BYTES:
            with suppress(TypeError):  # There may be a file among them.
                parts = [b"".join(parts)]
        if len(parts) == 1 and parts[0].__class__ is bytes and not self._outbox.parts:
            self._send_alone(parts[0])
        else:
            for part in parts:
                self._outbox.add(part)
            if self._outbox and not self._is_sending:
                self._send()
        if is_metered:
            self._note_time(began_s)
        if not self._is_reading:
            self.maybe_resume()

    def _note_time(self, began_s: float) -> None:
        """What sending takes of the node's thread counts against the quotas of the client."""
        server = self.server
        if server.metering is not None:
            server.metering.on_sent(self.session.client, server.now_s() - began_s)

    def _send_alone(self, data: bytes) -> None:
        """A reply of bytes with nothing before it, as most are: it need not go through the outbox."""
        try:
            count = self._transport.send(data)
        except BlockingIOError:
            count = 0
        except OSError:
            self.close()
            return
        self.server.bytes_sent += count
        self.session.unsent_bytes -= count
        if count < len(data):
            self._outbox.add(memoryview(data)[count:])
            self._await_writable()

    def _await_writable(self) -> None:
        self._is_sending = self._awaits_writable = True
        self._watch()

    def on_writable(self) -> None:
        self._awaits_writable = False
        began_s = self.server.now_s()
        try:
            self._send()
            self._note_time(began_s)
            if not self._awaits_writable:
                self._watch()
            self._end_sending()
        except Exception as problem:
            self.break_off(problem)

    def _end_sending(self) -> None:
        if not self._is_reading:
            self.maybe_resume()

    def _send(self) -> None:
        """Sends from the outbox until it is empty, the client takes no more, or the disk has to be waited for."""
        outbox, self._is_sending = self._outbox, False
        sent, buffered = outbox.sent, outbox.buffered
        try:
            cold = outbox.send(self._transport)
            job = OnDiskThread(outbox, self._transport, cold) if cold is not None else None
        except OSError:
            self.close()
            return
        self._note_sent(sent, buffered)
        if job is not None:
            self._is_sending = True
            self._send_cold(job)
        elif outbox:
            self._await_writable()

    def _note_sent(self, sent: int, buffered: int) -> None:
        """The outbox has moved on from there."""
        count = self._outbox.sent - sent
        if count:
            self.server.bytes_sent += count
            self.session.active_s = self.server.now_s()
        self.session.unsent_bytes -= buffered - self._outbox.buffered

    def _send_cold(self, job: OnDiskThread) -> None:
        def done(result: int | bytes) -> None:
            job.end()
            if self.session.client.is_open:
                sent, buffered = self._outbox.sent, self._outbox.buffered
                takes_more = job.finish(result)
                self._note_sent(sent, buffered)
                if takes_more:
                    self._send()
                else:
                    self._await_writable()
                self._end_sending()

        def failed(_: Exception) -> None:
            job.end()
            self.close()

        self.server.workers.run(job.run, done, failed)

    # Stopping and starting

    def _watch(self) -> None:
        """Tells the network what is wanted of it. What has been received already comes before anything new."""
        if self.session.client.is_open:
            reading = self._is_reading and not self._frames.has_waiting
            self._transport.watch(self, reading=reading, writing=self._awaits_writable)

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self.server.paused[self] = None
            self._watch()

    def maybe_resume(self) -> None:
        """Something that the client had to wait for may be over."""
        if self.session.has_room(len(self._replies)) and not self.server.is_full:
            self.resume_reading()

    on_resumed = maybe_resume
    on_paused = _pause_reading

    def mute(self, delay_s: float) -> None:
        """The client is throttled: nothing more of it is looked at for so long (KIP-219). A longer time stands."""
        if self.session.client.is_open:
            self.session.mute(delay_s, self.server.timers, self.maybe_resume)
            self._pause_reading()

    def resume_reading(self) -> None:
        if self._is_reading or not self.session.client.is_open:
            return
        self._is_reading = True
        self.server.paused.pop(self, None)
        self._watch()
        if self._frames.has_waiting:
            self.server.network.at_end_of_turn(self._take_waiting)

    # The end

    @property
    def unanswered(self) -> int:
        return len(self._replies)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no request waits for its reply, and no reply for the client."""
        return not self._replies and not self._outbox

    @property
    def is_stuck(self) -> bool:
        """Whether all that is under way waits for the client to take it."""
        return self._awaits_writable

    def hang_up(self, problem: RemoteProtocolError) -> None:
        """Closes the connection. The replies that are ready leave first, as far as the socket takes them at once: what
        came before a bad request is not its fault, and Kafka has answered it by then."""
        if self.session.client.is_open:
            self.server.refused(self.session.client, problem)
            try:
                self.send_ready()
            finally:
                self.close()

    def close(self) -> None:
        client = self.session.client
        if not client.is_open:
            return
        client.is_open = False
        client.line = None
        self.session.end_muting()
        self._is_reading = self._awaits_writable = False
        self._outbox.clear()
        for request in self._replies:
            request.abandon()
        self._replies.clear()
        self._frames.clear()
        self._transport.close()
        self.server.closed(self)
