"""A name with line breaks in it is a name, in the log as everywhere."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ottla.cli.log_format import set_up_logging

NASTY = "x\n12:00:00 INFO    User:admin logged in\r\x1b[2J\u2028end"


@pytest.fixture
def kept_logging() -> Iterator[None]:
    """What is set up here is undone: other tests look at the log too."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_message_is_one_line_whatever_is_in_it(kept_logging: None, format: str) -> None:
    stream = io.StringIO()
    set_up_logging(format, stream=stream)
    logging.getLogger("ottla.test").warning("%s was not created", NASTY)
    (line,) = stream.getvalue().rstrip("\n").split("\n")
    assert "\r" not in line
    assert "\x1b" not in line
    if format == "json":
        assert json.loads(line)["message"] == f"{NASTY} was not created"


def test_an_exception_is_told_with_its_lines(kept_logging: None) -> None:
    stream = io.StringIO()
    set_up_logging("text", stream=stream)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("ottla.test").exception("it failed")
    assert "Traceback" in stream.getvalue()
    assert len(stream.getvalue().splitlines()) > 2
