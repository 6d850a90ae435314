"""`ottla balance`, `ottla node drain|remove`, and what `ottla cluster roll` waits for: who has what, and who should.

balance_command, node_command     the command lines
cluster_load     what brokers have: replicas, bytes, traffic, leaders, room
proposing        which replicas should be elsewhere, and who should lead; pure
carrying_out     a plan in throttled steps, stopped when something goes wrong; plan_files plans, to be kept and undone
sync_check       whether all replicas, brokers and controllers are where they should be
"""
