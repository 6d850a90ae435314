"""`--json`, which Kafka's tools do not have: what scripts need as one JSON document, under the names of our admin."""

from typing import Final

from ottla.cli.options.table import Option

JSON: Final = Option("json", "Print one JSON document. Kafka's own tool does not have this option.")


def print_json(document: object) -> None:
    import json  # few calls of a tool ask for it

    print(json.dumps(document, ensure_ascii=False))
