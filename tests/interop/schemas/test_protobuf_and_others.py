""".proto files beside Square's Wire, whose parser Confluent's registry has, and beside Confluent's rules."""

from base64 import b64encode
from random import Random

import pytest

from ottla.schemas.schema import InvalidSchema, parse
from tests.interop.schemas.schema_oracles import asked
from tests.property.schemas.random_proto import IMPORTED, changed, random_proto

pytestmark = pytest.mark.interop

FILES = 2_000
NOT_IN_5_5 = {
    # 5.5.3 looked at oneofs in another way, and at fields that moved between them not at all.
    "ONEOF_FIELD_REMOVED", "MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF",
    # It knew no labels and no packages.
    "FIELD_NUMERIC_LABEL_CHANGED", "REQUIRED_FIELD_ADDED", "REQUIRED_FIELD_REMOVED", "PACKAGE_CHANGED",
}  # fmt: skip


def without_comments(text: str) -> str:
    return text.replace(" // why not", "")


def test_our_text_says_what_the_file_said() -> None:
    """Wire reads the file and our text of it, and writes both alike."""
    texts = [without_comments(random_proto(Random(seed))) for seed in range(FILES)]
    texts = [text for text in texts if "edition" not in text and "group" not in text]  # it knows neither in full
    ours = [parse("PROTOBUF", text, {"lib/shared.proto": IMPORTED}) for text in texts]
    questions = [{"file": text, "text": one.canonical} for text, one in zip(texts, ours, strict=True)]
    read = 0
    for question, said in zip(questions, asked("WireOracle", questions), strict=True):
        if said["file"].startswith("refused"):
            continue
        if "\\x" in question["file"] or "\\1" in question["file"] or "010" in question["file"]:
            continue  # bytes that it does not keep, and numbers that it reads as decimal
        read += 1
        # Messages come before enums in our text, as in Confluent's; Wire keeps the order of the file.
        assert sorted(said["text"].split("\n")) == sorted(said["file"].split("\n")), question["file"]
    assert read > FILES / 3


def test_rules_refuse_what_confluents_refused() -> None:
    """The rules of 5.5.3 are the newest that can be had. Those of today refuse more, and nothing less but these."""
    questions, verdicts = [], []
    for seed in range(FILES):
        random = Random(seed)
        text = without_comments(random_proto(random))
        if "syntax" not in text or "lib/shared" in text or "group" in text or "import" in text:
            continue
        try:
            old, new = parse("PROTOBUF", text), parse("PROTOBUF", changed(random, text))
            new.validate()
        except InvalidSchema:
            continue
        questions.append({"new": _in_base64(new.text), "old": _in_base64(old.text)})
        verdicts.append(
            [{one.rule.id for one in found} for found in (new.incompatibilities(old), old.incompatibilities(new))]
        )
    compared = 0
    for verdict, said in zip(verdicts, asked("ConfluentProtobuf", questions), strict=True):
        if "error" in said:
            continue
        for ours, theirs in zip(verdict, (said["backward"], said["forward"]), strict=True):
            if ours & NOT_IN_5_5:
                continue
            compared += 1
            assert (not ours) is theirs, ours
    assert compared > FILES / 4


def _in_base64(text: str) -> str:
    return b64encode(text.encode()).decode()
