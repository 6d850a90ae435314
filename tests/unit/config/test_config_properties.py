r"""Properties files read and written as `java.util.Properties` does; the interop test asks Java itself."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.properties import read_properties, write_properties


@pytest.mark.parametrize(
    ("content", "properties"),
    [
        (b"a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        (b"a = 1\nb : 2\nc   3\nd\t=\t4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        (b"# one\n  ! two\n\n \t\na=1", {"a": "1"}),
        (b"a=1 # not a comment", {"a": "1 # not a comment"}),
        (b"a=1\\\n   2\\\n   3\nb=4", {"a": "123", "b": "4"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"a=1\\\n# not a comment either", {"a": "1# not a comment either"}),
        (b"a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        (b"a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        (b"a=\\u0041\\u00e9", {"a": "A\u00e9"}),
        (b"a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        (b"a=\xe9", {"a": "\u00e9"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=trailing blanks  \n", {"a": "trailing blanks  "}),
        (b"a==1\nb=:2", {"a": "=1", "b": ":2"}),
        (b"a\n=1", {"a": "", "": "1"}),
        (b"a=1\\", {"a": "1"}),
        (b"", {}),
    ],
)
def test_a_file_reads_as_java_reads_it(content: bytes, properties: dict[str, str]) -> None:
    assert read_properties(content) == properties


@pytest.mark.parametrize("content", [b"a=\\u12", b"a=\\u12g4", b"a=\\u 123", b"a=\\u+123"])
def test_an_escape_without_four_digits_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        read_properties(content)


def test_a_reference_to_a_config_provider_stays_text() -> None:
    assert read_properties(b"a=${file:/secrets:password}") == {"a": "${file:/secrets:password}"}


def test_a_file_is_written_as_java_writes_it() -> None:
    content = write_properties(
        {"version": "1", "cluster.id": "4L6g3nShT-eMCtK--X86sw", " k=": " v \u00e9\U0001f600#"},
        comments=["", "Sun Nov 15 10:16:00 UTC 2026"],
    )
    assert content == (
        b"#\n#Sun Nov 15 10:16:00 UTC 2026\n"
        b"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n\\ k\\==\\ v \\u00E9\\uD83D\\uDE00\\#\n"
    )


@pytest.mark.slow
@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_reads_back(properties: dict[str, str]) -> None:
    assert read_properties(write_properties(properties, comments=["a comment"])) == properties


# What java.util.Properties looks at, and a few bytes that only Python takes for line ends or blanks.
PIECES = [
    b"a", b"b", b"n", b"t", b"u", b"=", b":", b" ", b"\t", b"\f", b"\\", b"\\", b"\\\n", b"\n", b"\r", b"\r\n", b"#",
    b"!", b"\\u0041", b"\\u00e9", b"\\u", b"\\uD83D\\uDE00", b"\xe9", b"\x85", b"\x0b", b"\x1c", b"\x00",
]  # fmt: skip
LETTERS = ["a", " ", "=", ":", "#", "!", "\\", "\n", "\t", "\f", "\r", "\u00e9", "\U0001f600", "\x7f", "\x80", "\x00"]


@pytest.mark.interop
def test_java_reads_and_writes_the_same() -> None:
    java = shutil.which("java")
    assert java, "java is not on PATH"
    chance = random.Random(20_26)
    # The last line is whole: what Java makes of a lone backslash at the very end depends on the kind of line end.
    files = [b"".join(chance.choices(PIECES, k=chance.randint(0, 14))) + b"\nz=1" for _ in range(20_000)]
    pairs = [("".join(chance.choices(LETTERS, k=5)), "".join(chance.choices(LETTERS, k=5))) for _ in range(5_000)]
    questions = [f"load {content.hex()}" for content in files]
    questions += [f"store {hex_of(key)}={hex_of(value)}" for key, value in pairs]
    answers = subprocess.run(
        [java, str(Path(__file__).parent / "JavaProperties.java")],
        input="\n".join(questions) + "\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(answers) == len(questions)
    for content, answer in zip(files, answers, strict=False):
        assert read_as_java_prints(content) == answer, content
    for (key, value), answer in zip(pairs, answers[len(files) :], strict=True):
        assert write_properties({key: value}).hex() == answer, (key, value)


def hex_of(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def read_as_java_prints(content: bytes) -> str:
    try:
        properties = read_properties(content)
    except ValueError:
        return "error"
    return " ".join(sorted(f"{hex_of(key)}={hex_of(value)}" for key, value in properties.items()))
