"""The cluster as clients and controllers see it.

    api_versions         what this node can be asked
    metadata_requests, topic_partitions, described_partitions, describe_cluster, describe_quorum
    cluster_view         brokers and their addresses on one listener
    authorized_operations
    forwarding           a request to the controller and back
    controller_listener  what is answered on the controllers' listener

Import from the modules.
"""
