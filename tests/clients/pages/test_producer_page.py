"""The examples of docs/clients/producer.md, run against a node."""

import re
from pathlib import Path

import pytest

from ottla import Producer

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "producer.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for topic in ("clicks", "orders"):
            producer.partitions_for(topic)  # which makes it, if need be
    example = EXAMPLES[number].replace("localhost:9092", bootstrap)
    exec(compile(example, f"{PAGE.name}, example {number + 1}", "exec"), {"__name__": "__main__"})
