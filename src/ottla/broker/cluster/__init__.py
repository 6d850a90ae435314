"""The cluster as clients see it.

    api_versions         what this node can be asked
    metadata_requests, topic_partitions, described_partitions, describe_cluster
    cluster_metadata     what handlers look things up in, and who this node is
    cluster_view         brokers and their addresses on one listener
    forwarding           a client's request to the controller and back
    local_peers          what brokers ask each other, where there is only this one

Import from the modules.
"""
