"""One topic `_schemas`, Karapace's, then ours, then Karapace's again, then ours: nothing is lost or comes back."""

from pathlib import Path
from time import monotonic, sleep

import pytest

import ottla
from ottla.admin import NewTopic
from ottla.testing import SchemaRegistry
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.registry import karapace
from tests.interop.registry.karapace import Karapace
from tests.interop.registry.takeover import ask, done, registered, what_it_says
from tests.interop.target import a_target

pytestmark = pytest.mark.interop

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
LATER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":0}]}'
LAST = LATER.replace('"default":0', '"default":1')
BASKET = '{"type":"record","name":"Basket","fields":[{"name":"order","type":"Order"}]}'
OBJECT = '{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}'
PART = 'syntax = "proto3";\npackage shop;\n\nmessage Part {\n  string name = 1;\n}\n'
WHOLE = 'syntax = "proto3";\npackage shop;\n\nimport "part.proto";\n\nmessage Whole {\n  Part part = 1;\n}\n'


@pytest.fixture(autouse=True)
def _karapace() -> None:
    if karapace.PYTHON is None:
        pytest.skip("KARAPACE_PYTHON names no Python that has Karapace (not on PyPI): see karapace.py beside this")


@pytest.mark.parametrize(("kafka", "keys"), [("ottla", "new"), ("ottla", "old"), ("apache", "new")])
def test_karapace_and_we_take_over_from_each_other(tmp_path: Path, kafka: str, keys: str) -> None:
    with ApacheKafka() if kafka == "apache" else a_target() as node:
        if keys == "old":
            _begin_with_an_old_key(node.bootstrap)
        with Karapace(node.bootstrap, tmp_path) as theirs:
            _write_first(theirs.url)
            before = what_it_says(theirs.url)
        assert before["live"] == ["basket", "copy", "object", "order", "part", "whole", "ä/%"]

        with SchemaRegistry(node.bootstrap) as ours:
            assert what_it_says(ours.url) == before
            _write_ours(ours.url)
            before = what_it_says(ours.url)

        with Karapace(node.bootstrap, tmp_path) as theirs:
            assert what_it_says(theirs.url) == before
            _write_more(theirs.url)
            before = what_it_says(theirs.url)

        with SchemaRegistry(node.bootstrap) as ours:
            assert what_it_says(ours.url) == before
            assert registered(ours.url, "last", '{"type":"enum","name":"E","symbols":["last"]}') > max(before["ids"])


def test_karapace_and_we_are_members_of_one_group(tmp_path: Path) -> None:
    """As long as one takes over from the other. Whichever is asked, the one that leads decides."""
    with a_target() as node, Karapace(node.bootstrap, tmp_path) as theirs:
        assert registered(theirs.url, "a", ORDER) == 1
        with SchemaRegistry(node.bootstrap) as ours:
            ids = [
                registered(url, f"s{number}", f'{{"type":"enum","name":"E{number}","symbols":["x"]}}')
                for number in range(5)
                for url in (ours.url, theirs.url)
            ]
            assert ids == [2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
            for url in (ours.url, theirs.url):
                assert ask(url, "POST", "/subjects/a/versions", {"schema": '"int"'})[0] == 409
            assert what_it_says(ours.url) == what_it_says(theirs.url)
            theirs.stop()
            body, deadline_s = {"schema": LAST}, monotonic() + 30
            while (reply := ask(ours.url, "POST", "/subjects/b/versions", body))[0] >= 500:
                assert monotonic() < deadline_s, f"the one that is left does not lead: {reply}"
                sleep(0.1)
            assert (reply[0], reply[1]["id"]) == (200, 7)


def _begin_with_an_old_key(bootstrap: str) -> None:
    """Karapace writes its keys in its old order from the first one on that it reads in it."""
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("_schemas", 1, config={"cleanup.policy": "compact"})]).raise_first()
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("_schemas", key=b'{"magic":0,"keytype":"NOOP"}', value=None)


def _write_first(url: str) -> None:
    """What Karapace can do: every kind of record that it writes."""
    registered(url, "order", ORDER)
    registered(url, "order", LATER)
    registered(url, "copy", ORDER)
    registered(url, "ä/%", ORDER)
    registered(url, "basket", BASKET, references=[{"name": "Order", "subject": "order", "version": 1}])
    registered(url, "object", OBJECT, "JSON")
    registered(url, "part", PART, "PROTOBUF")
    registered(url, "whole", WHOLE, "PROTOBUF", [{"name": "part.proto", "subject": "part", "version": 1}])
    for subject in ("soft", "gone", "half"):
        registered(url, subject, LATER)
    registered(url, "half", LAST)
    for path in ("soft", "gone", "gone?permanent=true", "half/versions/1", "half/versions/1?permanent=true"):
        done(url, "DELETE", f"/subjects/{path}")
    done(url, "DELETE", "/subjects/half")
    done(url, "PUT", "/config", {"compatibility": "FULL"})
    for subject in ("order", "object", "part"):
        done(url, "PUT", f"/config/{subject}", {"compatibility": "NONE"})
    done(url, "DELETE", "/config/object")


def _write_ours(url: str) -> None:
    """On what Karapace wrote, and beside it."""
    same = registered(url, "copy", ORDER)
    assert same == done(url, "GET", "/subjects/order/versions/1")["id"], "a schema that is there is found again"
    registered(url, "order", LAST)
    registered(url, "ours", OBJECT, "JSON")
    registered(url, "ours-too", PART.replace("Part", "Other"), "PROTOBUF")
    for subject in ("ours-gone", "ours-deleted"):
        registered(url, subject, '{"type":"map","values":"string"}')
    for path in ("soft?permanent=true", "copy", "ours-gone", "ours-gone?permanent=true"):
        done(url, "DELETE", f"/subjects/{path}")
    done(url, "DELETE", "/subjects/order/versions/2")
    done(url, "PUT", "/config", {"compatibility": "FORWARD"})
    done(url, "DELETE", "/config/part")
    done(url, "PUT", "/config/ours", {"compatibility": "NONE"})


def _write_more(url: str) -> None:
    """On what we wrote."""
    id = done(url, "GET", "/subjects/ours-deleted/versions/1")["id"]
    assert registered(url, "again", '{"type":"map","values":"string"}') == id, "Karapace finds ours again, too"
    done(url, "DELETE", "/subjects/ours-deleted/versions/1")
    done(url, "DELETE", "/subjects/copy?permanent=true")
    done(url, "PUT", "/config", {"compatibility": "BACKWARD"})
    done(url, "DELETE", "/config/ours")
    registered(url, "theirs", '{"type":"array","items":"string"}')
    assert ask(url, "GET", "/subjects/copy/versions/1")[0] == 404
