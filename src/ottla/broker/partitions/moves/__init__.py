"""Replicas on their way from one log directory of this node to another (KIP-113).

    replica_moves        all of them, and those that wait for their turn
    replica_move         one move, step by step; replica_copy is its copying
    interrupted_moves    puts right what a stop in the middle of a move has left

Import from the modules.
"""
