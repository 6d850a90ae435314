"""A client of a schema registry from a converter's options."""

import pytest

from ottla.connect.options import InvalidOption
from ottla.connect.schema_registry import registry_client


def test_options_of_the_client_are_read_and_others_left_to_the_converter() -> None:
    options = {
        "schema.registry.url": "http://127.0.0.1:1,http://127.0.0.1:2",
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "user:secret",
        "enhanced.avro.schema.support": "true",
    }
    registry_client(options).close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "where a registry is"),
        ({"schema.registry.url": "ftp://x"}, "url"),
        ({"schema.registry.url": "http://x", "basic.auth.credentials.source": "SASL_INHERIT"}, "SASL_INHERIT"),
        ({"schema.registry.url": "http://x", "schema.registry.colour": "red"}, "colour"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str | None], words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        registry_client(options)
    assert words in str(refused.value)
