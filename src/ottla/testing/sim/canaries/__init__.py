"""Nodes that are broken on purpose, in one way each: a simulator that does not notice is no good.

    canaries         the ways, by name, and within how many seeds each is found
    broken_brokers   logs, producers, groups, transactions, replicas
    broken_quorums   votes, and what counts as committed
    switched         replacing a part of the product for a while

The product knows nothing of them. Import from the modules.
"""
