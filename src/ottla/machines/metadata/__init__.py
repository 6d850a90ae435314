"""The cluster's metadata: the image that records make, and the controller that decides on records.

    image        everything the `__cluster_metadata` log says, made by `replay` alone
    controller   requests to decisions
    decisions    the families of requests, one a module
    settings     settings that are given at run time
    refusal      why a request, or a part of one, is refused
    topic_names  what a topic may be called

Import from the modules.
"""
