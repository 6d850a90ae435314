"""The metrics page of a node.

    node_metrics         the page
    group_metrics, transaction_metrics, quota_metrics

Import from the modules.
"""
