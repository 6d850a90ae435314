"""Tools about the cluster and its nodes.

`cluster`             kafka-cluster: its id, its brokers and controllers, unregistering a broker
`features`            kafka-features: which versions of features the cluster uses
`metadata_quorum`     kafka-metadata-quorum: the controllers, and who of them leads
`new_controller`      what is to be known of a controller that is added
`broker_api_versions` kafka-broker-api-versions: what each broker serves
"""
