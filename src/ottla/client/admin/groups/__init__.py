"""Groups: listing and describing them, their offsets, their members.

listing      which groups there are
describing   consumer groups of both protocols, and classic groups
offsets      committed offsets: list, change, delete
removal      deleting groups, and removing members of one
share        share groups (KIP-932)
streams      streams groups (KIP-1071)
"""
