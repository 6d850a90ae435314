"""Asks an Apache Kafka node what it answers to `admin_scenes`. As a program, it writes that down."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.apis import api
from ottla.wire.frame import decode_response, encode_request, response_type
from tests.unit.machines.metadata.admin_scenes import scenes
from tests.unit.machines.metadata.plain_messages import plain

ANSWERS = Path(__file__).with_name("kafka_answers.json")


def ask_kafka(bootstrap: str) -> dict[str, Any]:
    host, _, port = bootstrap.partition(":")
    ids: dict[str, Uuid] = {}
    answers: dict[str, Any] = {}
    with socket.create_connection((host, int(port)), timeout=30) as connection, connection.makefile("rb") as replies:
        for name, request in scenes(ids):
            api_key = request._schema.api_key
            version = api(api_key).stable_versions[-1]
            connection.sendall(encode_request(request, version, 1, "recorder"))
            size = int.from_bytes(replies.read(4), "big")
            _, response = decode_response(response_type(api_key), replies.read(size), version)
            for result in getattr(response, "topics", ()):
                if getattr(result, "error_code", 1) == 0:
                    ids[result.name] = result.topic_id
            assert name not in answers, name
            answers[name] = plain(response)
    return answers


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(ask_kafka(os.environ["BOOTSTRAP"]), indent=1, ensure_ascii=False) + "\n")
