"""The classic group protocol: members meet at a barrier, and one of them divides the work (KIP-62, KIP-345, KIP-394).

    member     one member, and what it waits for
    group      the group's state and what may be asked of it
    joining    who comes, and as whom
    replies    replies to members
    timers     their names, and what they call
    rebalance  gathering, syncing, leaving, timing out: everything that moves a group from one state to the next

Import from the modules.
"""
