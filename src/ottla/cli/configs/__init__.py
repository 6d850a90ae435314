"""kafka-configs: settings of topics, brokers, groups and clients, quotas and credentials.

`configs`         what is asked for, in which order
`config_options`  its options
`entities`        whose settings, and what may not go together
`texts`           settings as they are written on a command line, and as they are printed
`resources`       settings that brokers keep by resource
`quotas`          quotas of clients, users and addresses
`scram`           credentials of users
"""
