"""The options of kafka-configs."""

from typing import Final

from ottla.cli.json_output import JSON
from ottla.cli.options.table import Option, Program

PROGRAM: Final = Program(
    "kafka-configs",
    "This tool prints and changes settings of topics, clients, users, brokers, IP addresses, client metrics and groups",
    (
        Option("bootstrap-server", "Brokers to begin with.", "String", "server to connect to"),
        Option("bootstrap-controller", "Controllers to begin with.", "String", "controller to connect to"),
        Option(
            "command-config", "Properties file with settings of the admin.", "String", "command config property file"
        ),
        Option("alter", "Change settings."),
        Option("describe", "Print settings."),
        Option("all", "With --describe: all settings, not only those that were set at run time."),
        Option(
            "entity-type",
            "Whose settings: topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups. "
            "users and clients may be given together.",
            "String",
        ),
        Option("entity-name", "Name or id of the one whose settings they are.", "String"),
        Option("entity-default", "The settings of all clients, users, brokers or ips that have none of their own."),
        Option(
            "add-config",
            "Settings to add: 'k1=v1,k2=[v1,v2],k3=v3', with brackets around values that have commas. "
            "docs/settings.md lists those of topics and brokers. Of users and clients: consumer_byte_rate, "
            "producer_byte_rate, request_percentage, controller_mutation_rate; of users also SCRAM-SHA-256 and "
            "SCRAM-SHA-512; of ips: connection_creation_rate.",
            "String",
        ),
        Option("add-config-file", "Properties file with settings to add.", "String"),
        Option("delete-config", "Settings to delete: 'k1,k2'.", "String", separator=","),
        Option("topic", "The topic.", "String"),
        Option("client", "The client's id.", "String"),
        Option("client-defaults", "What all clients have by default."),
        Option("user", "The user's principal.", "String"),
        Option("user-defaults", "What all users have by default."),
        Option("broker", "The broker's id.", "String"),
        Option("broker-defaults", "What all brokers have by default."),
        Option("broker-logger", "The id of the broker whose log levels these are.", "String"),
        Option("ip", "The IP address.", "String"),
        Option("ip-defaults", "What all IP addresses have by default."),
        Option("client-metrics", "Name of the subscription to clients' metrics.", "String"),
        Option("group", "The group's id.", "String"),
        JSON,
    ),
)
