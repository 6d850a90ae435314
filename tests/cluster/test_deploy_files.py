"""deploy/: each file is checked by what is at hand, and the container's entry point is run, from one node to three."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.config.properties import read_properties
from ottla.config.scopes import Scope, settings
from ottla.node.config import read_config
from ottla.testing.free_ports import free_ports
from tests.cluster import plain_yaml
from tests.cluster.processes_of_a_cluster import WAIT_S, eventually

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "deploy.md").read_text()
METRICS = "ottla.metrics.listener"


# --- what a container runs ---


@contextmanager
def node(data: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """deploy/start-node with nothing else in its environment; stopped as a container is."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    with (data.parent / f"{data.name}.log").open("ab") as log:
        given = {"PATH": path, "OTTLA_DATA": str(data), "OTTLA_METRICS": "", **environment}
        process = subprocess.Popen([DEPLOY / "start-node"], env=given, stdout=log, stderr=log, cwd=data.parent)
        try:
            yield process
            process.terminate()
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
            process.wait()


def roundtrip(servers: str, value: bytes) -> list[bytes]:
    """Sends, and returns all that is in the topic."""
    with ottla.Producer(bootstrap_servers=servers) as producer:
        producer.send("deployed", value).result(WAIT_S)
    with ottla.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        partition = ottla.TopicPartition("deployed", 0)
        consumer.assign([partition])
        found: list[bytes] = []
        while consumer.position(partition) < consumer.end_offsets([partition])[partition]:
            found += [record.value or b"" for record in consumer.poll(timeout=1)]
    return found


def test_a_node_alone_is_formatted_once_and_keeps_its_records(tmp_path: Path) -> None:
    client, controller = free_ports(2)
    data = tmp_path / "data"
    names = {
        "OTTLA_NODE_ID": "1",
        "OTTLA_HOST": "127.0.0.1",
        "OTTLA_CLIENT_PORT": str(client),
        "OTTLA_CONTROLLER_PORT": str(controller),
        "OTTLA_SETTINGS": "num.partitions=1\nlog.retention.hours=24",
    }
    with node(data, **names):
        assert roundtrip(f"127.0.0.1:{client}", b"one") == [b"one"]
    identity = (data / "log" / "meta.properties").read_bytes()
    with node(data, **names):
        assert roundtrip(f"127.0.0.1:{client}", b"two") == [b"one", b"two"]
    assert (data / "log" / "meta.properties").read_bytes() == identity
    written = read_properties((data / "server.properties").read_bytes())
    assert (written["log.retention.hours"], written["default.replication.factor"]) == ("24", "1")


def test_three_nodes_and_a_broker_are_a_cluster(tmp_path: Path) -> None:
    ports = free_ports(8)
    clients, controllers = ports[:4], ports[4:]
    voters = ",".join(f"{id}@127.0.0.1:{port}" for id, port in enumerate(controllers[:3], start=1))
    with ExitStack() as stack:
        for id, (client, controller) in enumerate(zip(clients, controllers, strict=True), start=1):
            names = {
                "OTTLA_NODE_ID": str(id),
                "OTTLA_HOST": "127.0.0.1",
                "OTTLA_CLIENT_PORT": str(client),
                "OTTLA_CONTROLLER_PORT": str(controller),
                "OTTLA_CONTROLLERS": voters,
                "OTTLA_CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qg",
                "OTTLA_SETTINGS": "num.partitions=1",
            }
            stack.enter_context(node(tmp_path / f"node-{id}", **names))
        servers = ",".join(f"127.0.0.1:{port}" for port in clients)
        with ottla.Admin(bootstrap_servers=servers) as admin:
            eventually(lambda: len(admin.describe_cluster().nodes) == 4, "four brokers")
            assert roundtrip(servers, b"one") == [b"one"]
            [partition] = admin.describe_topics(["deployed"])["deployed"].partitions
            assert len(partition.replicas) == 3


def test_several_nodes_need_a_cluster_id(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    given = {"PATH": path, "OTTLA_DATA": str(tmp_path / "data"), "OTTLA_CONTROLLERS": "1@a:9093,2@b:9093"}
    done = subprocess.run([DEPLOY / "start-node"], env=given, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "OTTLA_CLUSTER_ID" in done.stderr) == (2, True)


# --- the image ---


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in text.splitlines() if line]


def test_what_the_image_copies_is_there() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"}
    assert {name for name, _ in instructions()} <= known
    for name, rest in instructions():
        *sources, _ = [word for word in rest.split() if not word.startswith("--")]
        if name == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in sources), rest
    exposed = next(rest for name, rest in instructions() if name == "EXPOSE").split()
    script = (DEPLOY / "start-node").read_text()
    assert all(port in script for port in exposed)
    assert os.access(DEPLOY / "start-node", os.X_OK)


@pytest.mark.interop
def test_the_steps_of_the_image_make_a_node_that_runs(tmp_path: Path) -> None:
    """In a clean directory that stands for the image's root. What needs root, packages and a user, is left out."""
    work, places = tmp_path, {"/opt/ottla": tmp_path / "opt", "/usr/local/bin": tmp_path / "bin"}
    (tmp_path / "bin").mkdir()

    def moved(text: str) -> str:
        for place, here in places.items():
            text = text.replace(place, str(here))
        return text

    for name, rest in instructions():
        if name == "WORKDIR":
            work = tmp_path / rest.lstrip("/")
            work.mkdir()
        elif name == "COPY" and "--from" not in rest:
            *sources, target = moved(rest).split()
            for source in sources:
                to = work / target if not target.startswith("/") else Path(target)
                if (ROOT / source).is_dir():
                    ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
                    shutil.copytree(ROOT / source, to, ignore=ignored)
                else:
                    shutil.copy(ROOT / source, to)
        elif name == "RUN" and not rest.startswith(("apt-get", "useradd")):
            step = moved(rest).replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(step, shell=True, cwd=work, check=True, timeout=900)
    entry = next(rest for name, rest in instructions() if name == "ENTRYPOINT")
    client, controller = free_ports(2)
    environment = {
        "PATH": f"{tmp_path / 'opt' / 'bin'}:/usr/bin:/bin",
        "OTTLA_DATA": str(tmp_path / "data"),
        "OTTLA_METRICS": "",
        "OTTLA_HOST": "127.0.0.1",
        "OTTLA_CLIENT_PORT": str(client),
        "OTTLA_CONTROLLER_PORT": str(controller),
    }
    process = subprocess.Popen([moved(entry.strip('[]"'))], env=environment, cwd=tmp_path)
    try:
        assert roundtrip(f"127.0.0.1:{client}", b"one") == [b"one"]
        process.terminate()
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()


# --- systemd ---


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "ottla.service").read_text()
    [command] = re.findall(r"^ExecStart=(\S+) (\S+)$", text, re.MULTILINE)
    assert command == ("/opt/ottla/bin/kafka-server-start", "/etc/ottla/server.properties")
    assert all(word in PAGE for word in ("/opt/ottla/bin/pip install", command[1]))
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # all that is left to check is above
    unit = tmp_path / "ottla.service"
    unit.write_text(text.replace(command[0], str(Path(sys.executable).parent / "kafka-server-start")))
    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60, check=False
    )
    told = [line for line in done.stderr.splitlines() if "ottla.service" in line]
    assert (done.returncode, told) == (0, [])


@pytest.mark.parametrize("name", ["server.properties", "server-three.properties"])
def test_a_node_takes_the_settings(name: str) -> None:
    given = read_properties((DEPLOY / "systemd" / name).read_bytes())
    assert given.keys() - settings(Scope.BROKER).keys() == set()
    read_config(given)
    assert given[METRICS].startswith("127.0.0.1:")


# --- Kubernetes and compose ---

TEXT, NUMBER, FLAG = str, int, bool
LABELS = {"*": TEXT}
PROBE = {
    "httpGet!": {"path!": TEXT, "port!": TEXT},
    "periodSeconds": NUMBER,
    "timeoutSeconds": NUMBER,
    "failureThreshold": NUMBER,
}
METADATA = {"name!": TEXT, "labels": LABELS, "annotations": LABELS}
CONTAINER = {
    "name!": TEXT,
    "image!": TEXT,
    "imagePullPolicy": TEXT,
    "envFrom": [{"configMapRef!": {"name!": TEXT}}],
    "ports": [{"name!": TEXT, "containerPort!": NUMBER}],
    "startupProbe!": PROBE,
    "livenessProbe!": PROBE,
    "readinessProbe!": PROBE,
    "resources!": {"requests!": LABELS, "limits": LABELS},
    "volumeMounts": [{"name!": TEXT, "mountPath!": TEXT}],
}
AFFINITY = {
    "podAntiAffinity!": {
        "requiredDuringSchedulingIgnoredDuringExecution!": [
            {"topologyKey!": TEXT, "labelSelector!": {"matchLabels!": LABELS}}
        ]
    }
}
POD = {
    "terminationGracePeriodSeconds": NUMBER,
    "securityContext": {"runAsNonRoot": FLAG, "runAsUser": NUMBER, "fsGroup": NUMBER},
    "affinity": AFFINITY,
    "containers!": [CONTAINER],
}
CLAIM = {
    "metadata!": METADATA,
    "spec!": {"accessModes!": [TEXT], "resources!": {"requests!": {"storage!": TEXT}}},
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ConfigMap": ("v1", {"data!": LABELS}),
    "Service": (
        "v1",
        {
            "spec!": {
                "clusterIP": TEXT,
                "publishNotReadyAddresses": FLAG,
                "selector!": LABELS,
                "ports!": [{"name!": TEXT, "port!": NUMBER}],
            }
        },
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        {"spec!": {"maxUnavailable!": NUMBER, "selector!": {"matchLabels!": LABELS}}},
    ),
    "StatefulSet": (
        "apps/v1",
        {
            "spec!": {
                "serviceName!": TEXT,
                "replicas!": NUMBER,
                "podManagementPolicy": TEXT,
                "selector!": {"matchLabels!": LABELS},
                "template!": {"metadata!": {"labels!": LABELS, "annotations": LABELS}, "spec!": POD},
                "volumeClaimTemplates!": [CLAIM],
            }
        },
    ),
}
"""What Kubernetes' own reference has for the fields that are used; `!` is for those that must be there."""
COMPOSE = {
    "services!": {
        "*": {
            "image!": TEXT,
            "build": {"context!": TEXT, "dockerfile!": TEXT},
            "environment!": LABELS,
            "ports": [TEXT],
            "volumes!": [TEXT],
            "restart!": TEXT,
            "stop_grace_period!": TEXT,
            "healthcheck": {
                "test!": [TEXT],
                "interval": TEXT,
                "timeout": TEXT,
                "retries": NUMBER,
                "start_period": TEXT,
            },
        }
    },
    "volumes!": {"*": {}},
}


def problems(value: Any, shape: Any, at: str = "") -> list[str]:
    """What of a document is not as it should be."""
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return [f"{at} is no list"]
        return [problem for number, one in enumerate(value) for problem in problems(one, shape[0], f"{at}[{number}]")]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{at} is no map"]
        known = {name.rstrip("!"): inner for name, inner in shape.items()}
        found = [f"{at}.{name[:-1]} is missing" for name in shape if name.endswith("!") and name[:-1] not in value]
        for name, inner in value.items():
            if name in known or "*" in known:
                found += problems(inner, known.get(name, known.get("*")), f"{at}.{name}")
            else:
                found.append(f"{at}.{name} is unknown")
        return found
    return [] if type(value) is shape else [f"{at} is {value!r}, no {shape.__name__}"]


def manifests() -> dict[tuple[str, str], Any]:
    found = {}
    for one in plain_yaml.documents((DEPLOY / "kubernetes" / "ottla.yaml").read_text()):
        version, shape = KINDS[one["kind"]]
        assert one["apiVersion"] == version
        rest = {name: value for name, value in one.items() if name not in ("apiVersion", "kind")}
        assert problems(rest, {"metadata!": METADATA, **shape}) == []
        found[one["kind"], one["metadata"]["name"]] = one
    return found


def environment_names() -> set[str]:
    return set(re.findall(r"\bOTTLA_[A-Z_]+", (DEPLOY / "start-node").read_text()))


def test_the_manifests_are_what_kubernetes_takes_and_fit_together() -> None:
    found = manifests()
    config = found["ConfigMap", "ottla"]["data"]
    stateful = found["StatefulSet", "ottla"]["spec"]
    template = stateful["template"]
    [container] = template["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    paths = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in paths.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert all(ports[probe["port"]] == 9404 for probe in paths.values())
    assert ("Service", stateful["serviceName"]) in found
    assert found["Service", stateful["serviceName"]]["spec"]["clusterIP"] == "None"
    labels = template["metadata"]["labels"]
    for selector in (
        stateful["selector"]["matchLabels"],
        found["PodDisruptionBudget", "ottla"]["spec"]["selector"]["matchLabels"],
        found["Service", "ottla"]["spec"]["selector"],
        found["Service", "ottla-nodes"]["spec"]["selector"],
    ):
        assert selector.items() <= labels.items()
    for service in ("ottla", "ottla-nodes"):
        for port in found["Service", service]["spec"]["ports"]:
            assert ports[port["name"]] == port["port"]
    assert [source["configMapRef"]["name"] for source in container["envFrom"]] == ["ottla"]
    assert config.keys() <= environment_names()
    expected = [
        f"{number + 1}@ottla-{number}{config['OTTLA_DOMAIN']}:{ports['controllers']}"
        for number in range(stateful["replicas"])
    ]
    assert config["OTTLA_CONTROLLERS"].split(",") == expected
    claims = [claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]]
    assert [(mount["name"], mount["mountPath"]) for mount in container["volumeMounts"]] == [
        (claims[0], "/var/lib/ottla")
    ]


@pytest.mark.parametrize(("name", "nodes"), [("compose.yaml", 1), ("compose-three.yaml", 3)])
def test_the_compose_files_fit_together(name: str, nodes: int) -> None:
    found = plain_yaml.read((DEPLOY / name).read_text())
    assert problems(found, COMPOSE) == []
    services = found["services"]
    assert len(services) == nodes
    assert {service["volumes"][0].partition(":")[0] for service in services.values()} == found["volumes"].keys()
    for service in services.values():
        environment = service["environment"]
        assert environment.keys() <= environment_names()
        assert f"{environment['OTTLA_NODE_ID']}@" in environment["OTTLA_CONTROLLERS"]
    built = next(service["build"] for service in services.values() if "build" in service)
    assert (DEPLOY / built["context"] / built["dockerfile"]).exists()
    if nodes == 3:
        hosts = [service["environment"]["OTTLA_HOST"] for service in services.values()]
        assert hosts == list(services)


def test_the_checker_finds_what_is_wrong() -> None:
    shape = {"a!": [TEXT], "b": {"*": NUMBER}}
    assert problems({"a": ["x"], "b": {"c": 1}}, shape) == []
    assert problems({"b": {"c": "1"}, "d": 1}, shape) == [".a is missing", ".b.c is '1', no int", ".d is unknown"]
    for text in ("a: 1\na: 2", "a:\nb: 1", "a: *b", "- a\n  b", "a: 'b'"):
        with pytest.raises(ValueError, match=r"."):
            plain_yaml.read(text)


def test_the_page_names_every_file_and_every_name_of_the_environment() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in DEPLOY.rglob("*") if path.is_file()]
    assert [path for path in files if path not in PAGE] == []
    assert sorted(name for name in environment_names() if name not in PAGE) == []
