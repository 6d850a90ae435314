"""Who somebody is and what they may do: pure knowledge that nodes, clients and tools share.

`acls`  rules of access, and the decision that follows from them
"""
