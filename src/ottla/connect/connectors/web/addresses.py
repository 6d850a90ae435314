"""Connects to an address by name, and never to one that only the machine itself should talk to.

Link-local addresses are where clouds answer requests for a machine's credentials. Whoever may configure a connector
must not be able to ask there in the worker's name. So the address that is connected to is what is looked at, after the
name was resolved: not the text in a setting, nor what the name stood for a moment before. Addresses of IPv6 that stand
for one of IPv4 (mapped, NAT64, 6to4, Teredo) count as that one.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Final

from ottla.connect.errors import ConnectError, Retriable

_REFUSED: Final = tuple(
    ip_network(one)
    for one in (
        "169.254.0.0/16",
        "fe80::/10",
        # Where clouds answer outside of the link-local range.
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
    )
)
_NAT64: Final = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
"""The well-known prefix, and the one for a site's own use (RFC 8215), whose /96 are used in the same way."""


class AddressRefused(ConnectError):
    """An address that connectors do not connect to."""


def check_address(address: str, host: str) -> None:
    """Raises `AddressRefused`. `host` is the name that led there."""
    for meant in _meanings(address):
        if any(meant in network for network in _REFUSED if network.version == meant.version):
            what = address if address == host else f"{host} is {address}, which"
            raise AddressRefused(
                f"{what} is a link-local or metadata address: connectors never connect there; name another host"
            )


def _meanings(address: str) -> Iterator[IPv4Address | IPv6Address]:
    """An address, and those of IPv4 that it stands for."""
    given = ip_address(address.partition("%")[0])
    yield given
    if isinstance(given, IPv6Address):
        low = IPv4Address(int(given) & 0xFFFFFFFF)
        if given.ipv4_mapped is not None:
            yield given.ipv4_mapped
        if given.sixtofour is not None:
            yield given.sixtofour
        if given.teredo is not None:
            yield from given.teredo
        if any(given in one for one in _NAT64) or int(given) < 1 << 32:
            yield low


def check_host(host: str) -> None:
    """For libraries that connect by themselves: no address that the name has now is refused. A name that has none is
    theirs to fail with. Raises `AddressRefused`."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    for _, _, _, _, address in found:
        check_address(str(address[0]), host)


def connect(host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected socket. A name is refused if any of its addresses is. Raises `AddressRefused`, `Retriable`."""
    deadline_s = monotonic() + timeout_s
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Retriable(f"{host} cannot be resolved: {error}") from None
    for _, _, _, _, address in found:
        check_address(str(address[0]), host)
    problem: OSError | None = None
    for family, kind, protocol, _, address in found:
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(max(deadline_s - monotonic(), 0.01))
            made.connect(address)
            check_address(str(made.getpeername()[0]), host)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            problem = error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise Retriable(f"cannot connect to {host}:{port}: {problem or 'it has no address'}")
