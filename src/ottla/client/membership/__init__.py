"""What a consumer needs to be a member of a group; no I/O.

- `member.py`: what a consumer and its member expect of each other
- `classic/`, `consumer/`: the members of the two protocols
- `assignors/`: who gets which partition, decided by the leader of a classic group
- `group_coordinator.py`, `poll_deadline.py`, `holdings.py`, `member_log.py`: what members of both protocols use
"""
