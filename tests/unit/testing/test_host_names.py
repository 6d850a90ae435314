import pytest

from ottla.runtime.network import SystemHostNames
from ottla.testing.host_names import FixedHostNames


def test_names_are_known_if_they_were_given():
    names = FixedHostNames({"somewhere": ["10.0.0.7", "10.0.0.8"]}, own_name="here")
    assert names.addresses_of("somewhere") == ["10.0.0.7", "10.0.0.8"]
    assert names.own_name() == "here"
    with pytest.raises(OSError, match="nowhere"):
        names.addresses_of("nowhere")


@pytest.mark.parametrize("names", [FixedHostNames(), SystemHostNames()], ids=["fixed", "system"])
def test_addresses_are_their_own_names(names):
    assert list(names.addresses_of("127.0.0.1")) == ["127.0.0.1"]
    assert list(names.addresses_of("::1")) == ["::1"]


@pytest.mark.parametrize("text", ["a" * 64 + ".org", "..", "\udcff"])
def test_what_can_be_no_name_is_an_error_like_others(text):
    with pytest.raises(OSError, match=r".+"):
        SystemHostNames().addresses_of(text)
