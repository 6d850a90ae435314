"""How much a client may take (KIP-13, KIP-55, KIP-124, KIP-599, KIP-612). Pure: the time comes in as an argument.

sampled_rate        a rate over the last windows, and how long a client that is above its limit has to wait
throttle_times      how long clients were told to wait, and how many wait now
token_bucket        the same for changes of the cluster, where bursts are usual
applicable_limit    which of the limits that operators have set applies to a user and a client id
accounts            the rates of all clients that have a limit of one kind
"""
