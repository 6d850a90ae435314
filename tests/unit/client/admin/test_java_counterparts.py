"""Every call of Java's Admin (4.3.1) has a counterpart, or a reason why not."""

import re

from ottla import Admin

# The abstract methods of org.apache.kafka.clients.admin.Admin.
JAVA = """
    close createTopics deleteTopics listTopics describeTopics describeCluster describeAcls createAcls deleteAcls
    describeConfigs incrementalAlterConfigs alterReplicaLogDirs describeLogDirs describeReplicaLogDirs createPartitions
    deleteRecords createDelegationToken renewDelegationToken expireDelegationToken describeDelegationToken
    describeConsumerGroups listConsumerGroups listConsumerGroupOffsets listStreamsGroupOffsets deleteConsumerGroups
    deleteStreamsGroups deleteConsumerGroupOffsets deleteStreamsGroupOffsets listGroups electLeaders
    alterPartitionReassignments listPartitionReassignments removeMembersFromConsumerGroup alterConsumerGroupOffsets
    alterStreamsGroupOffsets listOffsets describeClientQuotas alterClientQuotas describeUserScramCredentials
    alterUserScramCredentials describeFeatures updateFeatures describeMetadataQuorum unregisterBroker describeProducers
    describeTransactions abortTransaction listTransactions fenceProducers listConfigResources
    listClientMetricsResources clientInstanceId addRaftVoter removeRaftVoter describeShareGroups
    alterShareGroupOffsets listShareGroupOffsets deleteShareGroupOffsets deleteShareGroups describeStreamsGroups
    describeClassicGroups registerMetricForSubscription unregisterMetricFromSubscription metrics
    forceTerminateTransaction
"""
OTHER_NAMES = {"describe_delegation_token": "describe_delegation_tokens"}
NEEDS_PUSHED_METRICS = {
    "register_metric_for_subscription",
    "unregister_metric_from_subscription",
}


def test_every_call_of_javas_admin_is_here() -> None:
    ours = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in JAVA.split()}
    expected = {OTHER_NAMES.get(name, name) for name in ours} - NEEDS_PUSHED_METRICS
    assert expected <= set(vars(Admin))
