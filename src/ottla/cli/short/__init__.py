"""`ottla topic`, `ottla group` and `ottla config`: what one does every day, in few words. Kafka's tools do the rest.

topic           create, list, describe, alter and delete topics
group           list and describe groups, move their offsets, delete them
config          print and change settings of topics, brokers and groups
subcommands     what the three have in common
"""
