"""Checks what programs saw of a cluster under faults, with Jepsen's definitions for logs like Kafka's.

    operations          what a program asked and what it got; kept as JSON lines
    partition_logs      the log of each partition, as all operations together show it
    anomaly             one thing that a cluster must not do, and the kinds of it
    offset_anomalies    inconsistent offsets, duplicates, lost writes
    read_anomalies      aborted and precommitted reads
    order_anomalies     polls that skip or go back, sends that go back
    cycle_anomalies     G0 and G1c
    verdict             all of them over a history, as a table

Import from the modules. `tests/chaos` has the cluster, the faults and the programs (`make chaos`).
"""
