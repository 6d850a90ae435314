"""Kafka Connect's REST interface, version 4.3.1, path for path.

    requests  what stands in bodies and queries, read strictly
    bodies    what replies are made of
    api       one row for each operation: method, path, and what answers it
    login     who asks, and what they may do
    metrics   the page of metrics, `/metrics`
    front     HTTP: finding the row, passing changes on to the leader, errors in Connect's form

What differs from Kafka Connect's on purpose is in a table of docs/connect/worker.md.
"""
