"""The assignors that consumers name in `partition.assignment.strategy`.

- `assignor.py`: what an assignor is given and gives
- `range.py`, `round_robin.py`: without memory
- `sticky.py`: who has a claim on what; `sticky_equal.py` and `sticky_unequal.py` divide accordingly
- `sticky_data.py`, `sticky_racks.py`: what their members say of themselves; who is near what
- `by_name.py`: all of them, by the names that settings have
- `java_order.py`: orders that Apache Kafka's assignors take from Java
"""
