"""The metrics page of a node.

    metrics_listener     where it is served, and who may read it
    node_health          what /healthz goes by: disks that answer
    node_metrics         the page
    metric_help          what every metric says
    partition_metrics, group_metrics, transaction_metrics, quota_metrics, watch_metrics
    group_lags           how far groups are behind, asked of other leaders too
    client_metrics_page  what clients have pushed
    node_watch           what is sampled every few seconds

Import from the modules.
"""
