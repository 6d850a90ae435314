"""What compiled code answers and keeps is what Python does, whatever clients send and whatever happens to the node."""

import pytest

from ottla.broker.partitions.quick_append import partition_end
from tests.property.node.twin_histories import Twins


@pytest.mark.skipif(partition_end is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", range(12))
def test_a_node_answers_the_same_with_and_without_compiled_code(seed: int) -> None:
    twins = Twins(seed)
    twins.run(150)
    assert twins.answers["bytes"] > 50
