"""Kafka's tools that measure and that verify, with its options and its output.

`producer_perf`, `consumer_perf`, `e2e_latency`     how fast, and how soon
`verifiable_producer`, `verifiable_consumer`        what happens as JSON events, for tests of clusters
`replica_verification`                              whether replicas have the same records
`tool_options`                                      command lines, and settings of clients from them
`latencies`, `throttle`, `java_dates`               percentiles; a steady rate; dates as Java formats them
"""
