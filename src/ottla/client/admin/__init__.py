"""Administration without I/O: one module a family of calls, each call an `async def` that is given an `Asking`.

    asking       whom, until when, how often again; `each` for calls on many items
    routing      to leaders and coordinators, side by side
    results      what became of each item
    operations   what a principal may do
    known_values members of enumerations, of brokers that may know more of them
    admin_metrics    what is counted
    calls        the table of all calls, and how an admin gets them as methods; calls.pyi is generated

    topics, configs, records, groups/, cluster_nodes, quorum_voters, feature_levels, log_dirs, replicas,
    transaction_states, access/

`client/blocking/admin.py` and `client/aio/admin.py` make methods of them.
"""
