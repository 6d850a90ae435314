"""The clients, each a module with the same functions and classes."""

import aiokafka_client
import confluent_client
import kafka_python_client

CLIENTS = [confluent_client, kafka_python_client, aiokafka_client]
