"""Whether a rule of access speaks of the place where a client is.

A host is an address or `*`, as in Apache Kafka 4.3. A range of addresses, as `10.0.0.0/8`, is understood too: Kafka 4.3
takes it as well, and then applies the rule to nobody. Addresses are compared as addresses: `::1` is
`0:0:0:0:0:0:0:1`, which is how Java writes it.
"""

from ottla.security.acls.bindings import ANY_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


def covers(host: str, client_host: str) -> bool:
    """Whether `host`, of a rule, is where a client is."""
    if host in (ANY_HOST, client_host):
        return True
    if "/" in host:
        return _is_within(host, client_host)
    return (":" in host or ":" in client_host) and _is_same(host, client_host)


def _is_within(network: str, client_host: str) -> bool:
    from ipaddress import ip_network

    try:
        return _address(client_host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _is_same(host: str, client_host: str) -> bool:
    try:
        return _address(host) == _address(client_host)
    except ValueError:
        return False


def _address(text: str) -> "IPv4Address | IPv6Address":
    """An IPv4 address that came through an IPv6 socket is an IPv4 address."""
    from ipaddress import IPv6Address, ip_address

    address = ip_address(text)
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
