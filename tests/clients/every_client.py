"""The clients, each a module with the same functions and classes."""

from tests.clients import aiokafka_client, confluent_client, kafka_python_client

CLIENTS = [confluent_client, kafka_python_client, aiokafka_client]
