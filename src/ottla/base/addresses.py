"""Addresses of hosts, as people write them."""

from ipaddress import ip_address


def is_address(text: str) -> bool:
    """Whether it is an address, of version 4 or 6, and no name that is to be looked up."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
