"""What is given to an admin and what it gives back, by name: `from ottla.admin import NewTopic`."""

from ottla.client.admin.operations import AclOperation as AclOperation
from ottla.client.admin.results import Results as Results
from ottla.client.admin.results import UnnoticedErrors as UnnoticedErrors
from ottla.client.admin.topics import CreatedTopic as CreatedTopic
from ottla.client.admin.topics import NewPartitions as NewPartitions
from ottla.client.admin.topics import NewTopic as NewTopic
from ottla.client.admin.topics import PartitionDescription as PartitionDescription
from ottla.client.admin.topics import TopicDescription as TopicDescription
from ottla.client.admin.topics import TopicListing as TopicListing
