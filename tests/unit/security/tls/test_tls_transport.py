"""Bytes over TLS arrive whole and in order, whatever the sizes of reads, writes and pipes; and what is hostile ends."""

import ssl
from random import Random

import pytest

from ottla.security.tls.contexts import client_context, server_context
from ottla.security.tls.handshake import MOST_BYTES
from ottla.security.tls.transport import TlsTransport, shared_scratch
from tests.unit.security.tls import trial_certificates as trial
from tests.unit.security.tls.tls_pair import Side, Wire, client_side, server_side

SERVER = server_context(trial.inline(trial.node(), None))
CLIENT = client_context(trial.inline(None, trial.authority()))


def connected(capacity: int = 64 << 10, server: ssl.SSLContext = SERVER) -> tuple[Wire, TlsTransport, TlsTransport]:
    wire = Wire(capacity)
    of_server, of_client = server_side(wire, server)[0], client_side(wire, CLIENT)[0]
    wire.run()
    return wire, of_client.up, of_server.up


class Reader:
    """Reads as connections do: into a buffer of some size, whenever it is told that there is something."""

    def __init__(self, transport: TlsTransport, random: Random, largest: int) -> None:
        self.received = bytearray()
        self.has_ended = False
        self._transport, self._random, self._largest = transport, random, largest
        transport.watch(self, reading=True, writing=False)

    def on_readable(self) -> None:
        room = bytearray(self._random.randint(1, self._largest))
        try:
            count = self._transport.receive_into(room)
        except BlockingIOError:
            return
        self.received += room[:count]
        if not count:
            self.has_ended = True
            self._transport.watch(None, reading=False, writing=False)

    def on_writable(self) -> None:
        raise AssertionError("nobody wanted to write")


@pytest.mark.parametrize("seed", range(12))
def test_bytes_arrive_whole_and_in_order(seed: int) -> None:
    random = Random(seed)
    wire, client, server = connected(random.choice([400, 5_000, 64 << 10, 1 << 20]))
    reader = Reader(server, random, random.choice([10, 3_000, 40_000, 1 << 20]))
    data = random.randbytes(random.choice([1_000, 100_000, 700_000]))
    at, cut = 0, 0
    while at < len(data):
        cut = max(cut, random.randint(at + 1, len(data)))  # what was to be sent before is part of what is sent next
        middle = random.randint(at, cut - 1)
        try:
            if middle > at:
                at += client.send_parts([data[at:middle], data[middle:cut]], more=False)
            else:
                at += client.send(data[at:cut])
        except BlockingIOError:
            before = len(wire.server.inward.data), len(reader.received)
            wire.run()
            assert (len(wire.server.inward.data), len(reader.received)) != before, "nothing moves any more"
    wire.run()
    assert bytes(reader.received) == data


@pytest.mark.parametrize("behind", [1, 100, 446])
def test_what_comes_behind_a_full_buffer_is_told_of_wherever_the_buffer_was_full(behind: int) -> None:
    """What was received goes to OpenSSL in slices. Here the records that fill the reader's room end with the first one,
    and the rest of what was received is in the second.
    """
    wire, client, server = connected(1 << 20)
    assert client.version == "TLSv1.3", "whose records have 22 bytes around their own"
    first = (16_384, 32_768 - 16_384 - 2 * 22)
    data = bytes(sum(first)) + b"x" * behind
    reader = Reader(server, Random(0), 1)
    at = 0
    for size in (*first, behind):
        at += client.send(data[at : at + size])
    assert len(wire.server.inward.data) == 32_768 + behind + 22
    room = bytearray(sum(first))
    assert server.receive_into(room) == len(room)
    wire.run()
    assert bytes(reader.received) == b"x" * behind


def test_what_was_received_is_not_left_in_the_buffer_that_connections_share() -> None:
    """Tests run with poison: see `ottla.base.lent`."""
    wire, client, server = connected()
    reader = Reader(server, Random(0), 100_000)
    shared_scratch[: len(shared_scratch)] = bytes(len(shared_scratch))
    client.send(b"secret" * 1000)
    wire.run()
    assert bytes(reader.received) == b"secret" * 1000
    count = shared_scratch.tobytes().count(0xDB)
    assert count > 6000
    assert set(shared_scratch[:count]) == {0xDB}


def test_a_little_behind_a_large_part_goes_with_it_and_much_does_not() -> None:
    parts = [b"head", bytes(300_000), b"tail"]
    assert connected(1 << 20)[1].send_parts(parts, more=False) == 300_008
    assert connected(1 << 20)[1].send_parts([*parts, bytes(300_000)], more=False) == 300_008
    assert connected(8 << 20)[1].send_parts([bytes(10_000)] * 500, more=False) < 200_000


def test_what_came_with_the_handshake_is_told_of_without_the_socket() -> None:
    wire = Wire()
    of_server, of_client = server_side(wire, SERVER)[0], client_side(wire, CLIENT)[0]
    for _ in range(10):
        wire.client.turn()
        if of_client.transport is not None:
            break
        wire.server.turn()
    of_client.up.send(b"at once")
    while of_server.transport is None:
        wire.server.turn()
    assert not wire.server.inward.data
    reader = Reader(of_server.up, Random(1), 3)
    wire.run()
    assert bytes(reader.received) == b"at once"


def test_bytes_that_are_decrypted_wait_for_a_reader_that_pauses() -> None:
    wire, client, server = connected()
    reader = Reader(server, Random(1), 10)
    client.send(bytes(1_000))
    wire.server.turn()
    server.watch(reader, reading=False, writing=False)
    wire.run()
    count = len(reader.received)
    assert count <= 10
    server.watch(reader, reading=True, writing=False)
    wire.run()
    assert len(reader.received) == 1_000


def test_a_close_is_told_to_the_other_side() -> None:
    wire, client, server = connected()
    reader = Reader(server, Random(1), 100)
    client.send(b"the last")
    client.close()
    assert wire.client.is_closed
    wire.run()
    assert reader.has_ended
    assert bytes(reader.received) == b"the last"


def test_a_connection_that_is_cut_off_has_ended() -> None:
    wire, _, server = connected()
    wire.server.inward.is_closed = True
    assert server.receive_into(bytearray(10)) == 0


def test_bytes_that_were_changed_on_their_way_break_the_connection() -> None:
    wire, client, server = connected()
    client.send(b"pay alice")
    wire.server.inward.data[-1] ^= 1
    with pytest.raises(OSError, match="TLS failed"):
        server.receive_into(bytearray(100))


def test_a_record_that_is_too_large_breaks_the_connection() -> None:
    wire, _, server = connected()
    wire.client.outward.data += b"\x17\x03\x03\xff\xff" + bytes(40_000)
    with pytest.raises(OSError, match="TLS failed"):
        server.receive_into(bytearray(1 << 20))


def test_answers_that_the_other_side_asks_for_and_does_not_take_end_the_connection() -> None:
    """A client can ask for new keys as often as it likes, and each time OpenSSL answers."""
    _, client, server = connected(2_000)

    def ask() -> None:
        client._outgoing.write(bytes(1_000))  # what OpenSSL would have written by itself
        server.send(b"x")
        assert client.receive_into(bytearray(100)) == 1

    def ask_often() -> None:
        for _ in range(30):
            ask()

    with pytest.raises(ConnectionAbortedError, match="asks TLS for answers and takes none"):
        ask_often()


def test_an_answer_of_openssl_leaves_before_the_next_bytes() -> None:
    wire, client, server = connected()
    client._outgoing.write(b"answer")
    server.send(b"x")
    assert client.receive_into(bytearray(100)) == 1
    assert bytes(wire.server.inward.data) == b"answer"


def test_a_connection_is_not_negotiated_twice() -> None:
    """TLS 1.2 had it; a client that asks for it again and again would cost a key's work each time."""
    context = server_context({**trial.inline(trial.node(), None), "ssl.enabled.protocols": "TLSv1.2"})
    _, _, server = connected(server=context)
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert server.version == "TLSv1.2"


# Handshakes


def failure(side: Side) -> str:
    assert side.problem is not None
    return str(side.problem)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\x00\x00\x00\x20\x00\x12\x00\x04", "00 00 00 20, which is plain text on a TLS listener"),
        (b"GET / HTTP/1.1\r\n\r\n", "47 45 54 20, which is plain text"),
        (b"\x16\x03\x01\x40\xff" + bytes(0x40FF), "TLS failed"),
        (b"\x16\x03\x01\x00\x05hello", "TLS failed"),
    ],
)
def test_bytes_that_are_no_handshake_are_explained(sent: bytes, told: str) -> None:
    wire = Wire()
    side, _ = server_side(wire, SERVER)
    wire.client.outward.data += sent
    wire.run()
    assert told in failure(side)
    assert wire.server.is_closed


def test_a_client_is_told_that_the_server_does_not_speak_tls() -> None:
    wire = Wire()
    side, _ = client_side(wire, CLIENT)
    wire.server.outward.data += b"\x00\x00\x00\x10"
    wire.run()
    assert "its listener may be PLAINTEXT" in failure(side)


def test_an_end_in_the_middle_is_explained() -> None:
    wire = Wire()
    side, _ = server_side(wire, SERVER)
    client_side(wire, CLIENT)
    wire.server.inward.data = wire.server.inward.data[:100]
    wire.server.inward.is_closed = True
    wire.run()
    assert "ended the connection during the TLS handshake" in failure(side)


def test_a_handshake_that_does_not_end_is_bounded_in_bytes() -> None:
    wire = Wire(1 << 30)
    side, _ = server_side(wire, SERVER)
    hello = b"\x01\x00\xff\xff"  # the beginning of a ClientHello of 64 KiB, in records of one byte
    wire.client.outward.data += b"".join(
        b"\x16\x03\x01\x00\x01" + (hello[at : at + 1] or b"\0") for at in range(MOST_BYTES)
    )
    wire.run()
    assert side.problem is not None
    assert len(wire.server.inward.data) > 2 * MOST_BYTES, "it was read to its end"


def test_both_sides_are_told_why_a_certificate_is_refused() -> None:
    wire = Wire()
    of_server = server_side(wire, server_context(trial.inline(trial.expired(), None)))[0]
    of_client = client_side(wire, CLIENT)[0]
    wire.run()
    assert failure(of_client) == "the certificate of the other side is not accepted: certificate has expired"
    assert "our certificate has expired, says the other side" in failure(of_server)


def test_a_cipher_suite_that_is_not_in_the_list_is_given_up() -> None:
    wire = Wire()
    side = server_side(wire, SERVER, suites=frozenset({"TLS_AES_128_GCM_SHA256"}))[0]
    client_side(wire, CLIENT)
    wire.run()
    assert "has chosen TLS_AES_256_GCM_SHA384, which ssl.cipher.suites does not have" in failure(side)


def test_a_handshake_that_is_cancelled_says_nothing_more() -> None:
    wire = Wire()
    side, handshake = server_side(wire, SERVER)
    client_side(wire, CLIENT)
    handshake.cancel()
    wire.run()
    assert (side.transport, side.problem) == (None, None)
    assert wire.server.is_closed


@pytest.mark.parametrize("host", ["", "a" * 300, "ex\0ample", "nicht..gut"])
def test_a_name_that_nobody_can_have_is_a_failure_like_others(host: str) -> None:
    wire = Wire()
    server_side(wire, SERVER)
    of_client = client_side(wire, CLIENT, host)[0]
    wire.run()
    assert of_client.problem is not None
