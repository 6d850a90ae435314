"""What all examples begin with: a cluster to talk to."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ottla import Admin, NewTopic
from ottla.testing import Broker


@contextmanager
def a_cluster(*topics: NewTopic) -> Iterator[str]:
    """The cluster named on the command line, or a broker that lives as long as the program. Makes these topics."""
    if len(sys.argv) > 1:
        create(sys.argv[1], topics)
        yield sys.argv[1]
        return
    with Broker() as broker:
        create(broker.bootstrap, topics)
        yield broker.bootstrap


def create(bootstrap: str, topics: tuple[NewTopic, ...]) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(list(topics)).raise_first()
