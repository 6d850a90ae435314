"""Consumer groups: who is a member, who reads which partition, and how far everybody has come.

    group_coordinator    all groups of a partition of `__consumer_offsets`: replay, offsets, administration
    membership           what members ask, taken to their group
    classic, consumer    the two protocols, each with its members, its group and its transitions
    migration            from one to the other, while a group has members
    embedded             what consumers say to each other inside the classic protocol
    offsets              what was committed; offset_commands what may be done with it, committed one of them,
                         encoded_offsets those that were loaded and not asked after yet
    commits              the offsets of a request as records, and what they are replayed to
    effects              what a command has led to so far
    settings, records

Import from the modules.
"""
