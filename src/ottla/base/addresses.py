"""Addresses of hosts, as people write them and as the protocol does.

The standard library's `ipaddress` is loaded when an address of version 6, or what is none, is met: it takes a quarter
of a megabyte, and most nodes never need it.
"""

_VERSION_4_BYTES = 4


def is_address(text: str) -> bool:
    """Whether it is an address, of version 4 or 6, and no name that is to be looked up."""
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def to_bytes(address: str) -> bytes:
    """In the network's order. Raises `ValueError` for text that is not an address."""
    parts = address.split(".")
    if len(parts) == _VERSION_4_BYTES and all(part.isdecimal() and part.isascii() for part in parts):
        numbers = [int(part) for part in parts]
        if all(number <= 255 and part == str(number) for part, number in zip(parts, numbers, strict=True)):
            return bytes(numbers)
    from ipaddress import ip_address

    return ip_address(address).packed


def of_bytes(data: bytes) -> str:
    """The address that was written as these bytes. Raises `ValueError` for what is none."""
    if len(data) == _VERSION_4_BYTES:
        return ".".join(map(str, data))
    from ipaddress import ip_address

    return str(ip_address(data))
