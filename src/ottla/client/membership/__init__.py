"""What a consumer needs to be a member of a group; no I/O.

- `member.py`: what a consumer and its member expect of each other
"""
