"""How much a client may take (KIP-13, KIP-55, KIP-124, KIP-599, KIP-612). Pure: the time comes in as an argument.

rates     a rate over the last windows, how long a client above its limit has to wait, and how long all have waited
limits    which of the limits that operators have set applies to a user and a client id; the rates of all clients that
          have one; a bucket of tokens for changes of the cluster, where bursts are usual
"""
