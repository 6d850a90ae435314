"""Consuming without I/O.

consumer_core       what both faces of the consumer call: everything below, put together
consumer_settings   the settings that it acts on, checked and typed
subscription        what is wanted, and where the consumer stands in each partition
unread_records      what a loop over the consumer has not come to yet, and so is not consumed
offsets/            positions found and checked; offsets looked up and committed
fetching/           fetches ahead of the application, and what is kept of them
group_bond          what joins consumer and group member: revoking, assigning, the application's turn
group_metadata      who the consumer is, for a transaction that commits its offsets
cluster_queries     topics and partitions that are asked for apart from what is read
consumer_metrics    counts and times under Kafka's names
dead_letters        poison records, sent aside with the reason
face                what the blocking and the asyncio consumer have in common
"""
