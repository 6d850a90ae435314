"""Groups: listing and describing them, their offsets, their members.

listing      which groups there are
describing   consumer groups of both protocols, and classic groups
offsets      committed offsets: list, change, delete
removal      deleting groups, and removing members of one
"""
