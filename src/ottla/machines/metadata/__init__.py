"""The cluster's metadata: the image that records make, and the controller that decides on records.

    image        everything the `__cluster_metadata` log says, made by `replay` alone
    delta        what a batch of records changed, for brokers to act on
    controller   requests to decisions; its families are the modules beside it

Import from the modules.
"""
