"""What a consumer needs to be a member of a group; no I/O.

- `member.py`: what a consumer and its member expect of each other
- `assignors/`: who gets which partition, decided by the leader of a classic group
- `consumer_protocol.py`: what members of a classic group say to each other
"""
