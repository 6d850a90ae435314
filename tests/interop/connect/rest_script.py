"""What is asked of Kafka Connect's REST interface and of ours, in one order: every operation, right and wrong.

A `Call` is answered alike by both, or says in `ours` which status ours has, and why. `Settled` waits until both show a
connector in a state, because both start and stop connectors after they have answered.
"""

from typing import Any, NamedTuple

from tests.interop.connect.kafka_connect import FILE_SINK, FILE_SOURCE


class Call(NamedTuple):
    method: str
    path: str
    body: object = None
    headers: dict[str, str] | None = None
    ours: int | None = None
    """The status that ours has on purpose; the body is then not compared."""
    why: str = ""


class Settled(NamedTuple):
    name: str
    state: str
    tasks: tuple[str, ...] = ()


BETTER = "what a client did wrong is 400, not 500"
JAVA = "the name of a Java exception is in the text, the second time"
SOURCE = {"connector.class": FILE_SOURCE, "file": "/nowhere/in.txt", "topic": "rest-lines", "tasks.max": "1"}
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/rest-out.txt", "topics": "rest-lines"}
PARTITION = {"filename": "/nowhere/in.txt"}
WRONG = {
    **SOURCE,
    "tasks.max": "zz",
    "errors.tolerance": "bad",
    "key.converter": "nope",
    "transforms": "a",
    "predicates": "b",
}
TRANSFORMED = {
    **SOURCE,
    "name": "validated",
    "transforms": "route,unknown,untyped",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "a(b)",
    "transforms.route.negate": "x",
    "transforms.route.predicate": "p",
    "transforms.unknown.type": "Nope",
    "predicates": "p",
    "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.p.pattern": "a.*",
    "config.action.reload": "RESTART",
    "errors.retry.timeout": "x",
    "errors.log.enable": "y",
    "transaction.boundary": "bad",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "q",
}
BOTH_TOPICS = {**SINK, "name": "v", "topics.regex": "b", "errors.deadletterqueue.topic.name": "rest-lines"}


def offsets(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in pairs]}


def sink_partition(number: object = 0, topic: str = "rest-lines") -> dict[str, object]:
    return {"kafka_topic": topic, "kafka_partition": number}


BEGINNING: list[Call | Settled] = [
    Call("GET", "/connectors"),
    Call("GET", "/connectors?expand=status"),
    Call("GET", "/health"),
    Call("GET", "/nope"),
    Call("GET", "/connectors", headers={"Accept": "text/html"}),
    Call("GET", "/connectors", headers={"Accept": "*/*"}),
    Call("HEAD", "/connectors"),
    Call("PUT", "/connectors"),
    Call("DELETE", "/connectors"),
    Call("PATCH", "/connectors"),
    Call("PATCH", "/connectors/x"),
    Call("GET", "/connectors/x/tasks-config"),
    Call("POST", "/connectors/x/tasks", []),
    Call("PUT", "/connectors/x/fence"),
    # --- what is not there ---
    *(Call("GET", f"/connectors/nope{path}") for path in ("", "/config", "/status", "/tasks", "/topics", "/offsets")),
    Call("GET", "/connectors/nope/tasks/0/status"),
    Call("GET", "/connectors/nope/tasks/x/status"),
    *(Call("PUT", f"/connectors/nope/{verb}") for verb in ("pause", "resume", "stop", "topics/reset")),
    Call("POST", "/connectors/nope/restart"),
    Call("POST", "/connectors/nope/restart?includeTasks=true"),
    Call("POST", "/connectors/nope/tasks/0/restart"),
    Call("DELETE", "/connectors/nope"),
    Call("DELETE", "/connectors/nope/offsets"),
    Call("PATCH", "/connectors/nope/offsets", offsets((PARTITION, {"position": 2}))),
    Call("PATCH", "/connectors/nope/config", {"batch.size": "5"}),
    Call("GET", "/connectors/a%20b"),
    Call("GET", "/connectors/%C3%A9"),
    Call("GET", "/connectors/a%2Fb", ours=400, why="Jetty's page in HTML; ours is JSON"),
    Call("GET", "/connectors/a%25b", ours=400, why="Jetty's page in HTML; ours is JSON"),
    # --- bad requests ---
    Call("POST", "/connectors", {"name": "x", "config": {"connector.class": "Nope"}}, ours=400, why=JAVA),
    Call("POST", "/connectors", {"name": "x", "config": {"file": "a"}}, ours=400, why="members in their own order"),
    Call("POST", "/connectors", {"name": "x", "config": {"connector.class": FILE_SOURCE}}),
    Call("POST", "/connectors", {"name": "x", "config": {**SOURCE, "tasks.max": "0"}}),
    Call("POST", "/connectors", {"name": "x", "config": WRONG}),
    Call("POST", "/connectors", {"name": "x", "config": {"connector.class": FILE_SINK}}),
    Call("POST", "/connectors", {"name": "x", "config": BOTH_TOPICS | {"name": "x"}}),
    Call("POST", "/connectors", {"name": "x"}, ours=400, why=BETTER),
    Call("POST", "/connectors", {"config": SOURCE}),
    Call("POST", "/connectors", {"name": "", "config": SOURCE}),
    Call("POST", "/connectors", {"name": "  ", "config": SOURCE}),
    Call("POST", "/connectors", {"name": "x", "config": {**SOURCE, "name": "y"}}),
    Call("POST", "/connectors", {"name": "x", "config": SOURCE, "initial_state": "bogus"}, ours=400, why=BETTER),
    Call("POST", "/connectors", {"name": "x", "config": SOURCE, "extra": 1}, ours=400, why=BETTER),
    Call("POST", "/connectors", {"name": "x", "config": {"a": {"b": 1}}}, ours=400, why=BETTER),
    Call("POST", "/connectors", "{bad", ours=400, why=BETTER),
    Call("POST", "/connectors", "[]", ours=400, why=BETTER),
    Call("POST", "/connectors", "", ours=400, why=BETTER),
    Call("POST", "/connectors", {"name": "x", "config": SOURCE}, headers={"Content-Type": "text/plain"}),
    Call("PUT", "/connectors/x/config", {**SOURCE, "name": "other"}),
    Call("PUT", "/connectors/x/config", {"connector.class": "Nope"}, ours=400, why=JAVA),
    Call("PUT", "/connectors/x/config", "{bad", ours=400, why=BETTER),
]
LIFE: list[Call | Settled] = [
    # --- a source ---
    Call("POST", "/connectors", {"name": "src", "config": SOURCE}),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("POST", "/connectors", {"name": "src", "config": SOURCE}),
    *(Call("GET", f"/connectors/src{path}") for path in ("", "/", "/config", "/status", "/tasks", "/tasks/0/status")),
    Call("GET", "/connectors/src/tasks/7/status"),
    Call("GET", "/connectors/src/topics"),
    Call("GET", "/connectors/src/offsets"),
    *(Call("GET", f"/connectors?expand={what}") for what in ("status", "info", "status&expand=info", "bogus")),
    Call("PUT", "/connectors/src/config", {**SOURCE, "batch.size": "100"}),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("PATCH", "/connectors/src/config", {"batch.size": "5", "tasks.max": None}),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("GET", "/connectors/src"),
    Call("PATCH", "/connectors/src/config", {"topic": None}),
    Call("PATCH", "/connectors/src/config", {"name": "z"}, ours=400, why="a connector is not renamed"),
    Call("PUT", "/connectors/src/config", SOURCE),
    Settled("src", "RUNNING", ("RUNNING",)),
    # --- its states ---
    Call("PUT", "/connectors/src/pause"),
    Settled("src", "PAUSED", ("PAUSED",)),
    Call("GET", "/connectors/src/status"),
    Call("GET", "/connectors/src/tasks"),
    Call("PUT", "/connectors/src/resume"),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("POST", "/connectors/src/restart"),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("POST", "/connectors/src/restart?includeTasks=true"),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("POST", "/connectors/src/restart?onlyFailed=true"),
    Call("POST", "/connectors/src/restart?includeTasks=true&onlyFailed=true"),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("POST", "/connectors/src/tasks/9/restart"),
    Call("POST", "/connectors/src/tasks/0/restart"),
    Settled("src", "RUNNING", ("RUNNING",)),
    Call("DELETE", "/connectors/src/offsets"),
    Call("PATCH", "/connectors/src/offsets", offsets((PARTITION, {"position": 2}))),
    Call("PUT", "/connectors/src/stop"),
    Settled("src", "STOPPED"),
    Call("GET", "/connectors/src"),
    Call("GET", "/connectors/src/tasks"),
    # --- its offsets ---
    Call("PATCH", "/connectors/src/offsets", offsets((PARTITION, {"position": 2}))),
    Call("GET", "/connectors/src/offsets"),
    Call("PATCH", "/connectors/src/offsets", {"offsets": []}),
    Call("PATCH", "/connectors/src/offsets", {}),
    Call("PATCH", "/connectors/src/offsets", "{bad", ours=400, why=BETTER),
    Call("PATCH", "/connectors/src/offsets", "", ours=400, why=BETTER),
    Call("PATCH", "/connectors/src/offsets", {"offsets": [{"offset": {"position": 5}}]}, ours=400, why=BETTER),
    Call("PATCH", "/connectors/src/offsets", offsets((PARTITION, None))),
    Call("GET", "/connectors/src/offsets"),
    Call("PATCH", "/connectors/src/offsets", offsets((PARTITION, {"position": 3}))),
    Call("DELETE", "/connectors/src/offsets"),
    Call("GET", "/connectors/src/offsets"),
    Call("PUT", "/connectors/src/topics/reset"),
    # --- others' beginnings ---
    Call("POST", "/connectors", {"name": "paused", "config": SOURCE, "initial_state": "paused"}),
    Settled("paused", "PAUSED"),
    Call("GET", "/connectors/paused"),
    Call("GET", "/connectors/paused/status"),
    Call("POST", "/connectors", {"name": "stopped", "config": SOURCE, "initial_state": "Stopped"}),
    Settled("stopped", "STOPPED"),
    Call("GET", "/connectors/stopped/status"),
    Call("POST", "/connectors", {"name": "a/b", "config": SOURCE, "initial_state": "STOPPED"}),
    Settled("stopped", "STOPPED"),
    Call("PUT", "/connectors/na%20me/config", SOURCE),
    Call("DELETE", "/connectors/na%20me"),
    # --- a sink ---
    Call("POST", "/connectors", {"name": "snk", "config": SINK, "initial_state": "STOPPED"}),
    Settled("snk", "STOPPED"),
    Call("GET", "/connectors/snk"),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition(), {"kafka_offset": 1}))),
    Call("GET", "/connectors/snk/offsets"),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition("0"), {"kafka_offset": "2"}))),
    Call("GET", "/connectors/snk/offsets"),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition(), None))),
    Call("GET", "/connectors/snk/offsets"),
    Call("PATCH", "/connectors/snk/offsets", offsets(({"kafka_topic": "rest-lines"}, {"kafka_offset": 1}))),
    Call("PATCH", "/connectors/snk/offsets", offsets(({"kafka_partition": 0}, {"kafka_offset": 1}))),
    Call("PATCH", "/connectors/snk/offsets", offsets((None, {"kafka_offset": 1}))),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition("x"), {"kafka_offset": 1}))),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition(), {"kafka_offset": "x"}))),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition(), {"bad": 1}))),
    Call("PATCH", "/connectors/snk/offsets", offsets((sink_partition(), {"kafka_offset": -1})), ours=400, why=BETTER),
    Call("DELETE", "/connectors/snk/offsets"),
    Call("GET", "/connectors/snk/offsets"),
    Call("DELETE", "/connectors/snk/offsets"),
    # --- the end ---
    Call("DELETE", "/connectors/paused"),
    Call("GET", "/connectors/paused"),
    Call("GET", "/connectors"),
]
PLUGINS: list[Call | Settled] = [
    Call("GET", "/connector-plugins/nope/config"),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "name": "n"}),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", SOURCE),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", {"connector.class": "FileStreamSource"}),
    Call(
        "PUT",
        f"/connector-plugins/{FILE_SOURCE}/config/validate",
        {**SOURCE, "connector.class": "FileStreamSource"},
    ),
    Call("PUT", "/connector-plugins/FileStreamSink/config/validate", BOTH_TOPICS),
    Call("PUT", "/connector-plugins/FileStreamSink/config/validate", {**SINK, "name": "n"}),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", TRANSFORMED),
    Call("PUT", "/connector-plugins/Nope/config/validate", {"connector.class": "Nope"}, ours=400, why=BETTER),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", {"topic": "x"}, ours=400, why=BETTER),
    Call("PUT", "/connector-plugins/FileStreamSource/config/validate", "", ours=400, why=BETTER),
    Call("GET", "/connector-plugins/FileStreamSource/config"),
    Call("GET", "/connector-plugins/FileStreamSink/config"),
    Call("GET", "/connector-plugins/org.apache.kafka.connect.json.JsonConverter/config"),
    Call("GET", "/connector-plugins/org.apache.kafka.connect.transforms.RegexRouter/config"),
    Call("GET", "/connector-plugins/org.apache.kafka.connect.transforms.predicates.HasHeaderKey/config"),
]
SCRIPT = [*BEGINNING, *LIFE, *PLUGINS]
