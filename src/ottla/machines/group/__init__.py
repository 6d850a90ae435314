"""Consumer groups: who is a member, who reads which partition, and how far everybody has come.

    coordinator          all groups of a partition of `__consumer_offsets`: commands and replay
    classic, consumer    the two protocols, each with its members, its group and its transitions
    offsets              what was committed; offset_commands what may be done with it, committed one of them
    effects              what a command has led to so far
    settings, records, subscription

Import from the modules.
"""
