"""Nodes that are broken on purpose, in one way each: a simulator that does not notice is no good.

    canaries         the ways, by name
    switched         replacing a part of the product for a while

The product knows nothing of them. Import from the modules.
"""
