"""Addresses as text and as bytes, held to the standard library's, which is loaded for few of them."""

from ipaddress import ip_address

import pytest

from ottla.base.addresses import is_address, of_bytes, to_bytes

ADDRESSES = ["127.0.0.1", "0.0.0.0", "255.255.255.255", "10.20.30.40", "::1", "2001:db8::ff00:42:8329", "fe80::1"]
NO_ADDRESSES = [
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.-4",
    "1.2.3.٤",
    "::g",
    "1.2.3.4 ",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_the_same_after_its_bytes(address: str) -> None:
    assert to_bytes(address) == ip_address(address).packed
    assert of_bytes(to_bytes(address)) == address
    assert is_address(address)


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_is_refused(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(ValueError, match="does not appear to be"):
        to_bytes(text)


@pytest.mark.parametrize("size", [0, 3, 5, 17])
def test_bytes_of_another_length_are_no_address(size: int) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        of_bytes(bytes(size))
