"""The modules of calls, as the admins name them; each is imported when one of its calls is first used."""

from typing import TYPE_CHECKING

from ottla.client.admin.late_calls import Family

if TYPE_CHECKING:
    from ottla.client.admin import cluster_nodes as cluster_nodes
    from ottla.client.admin import configs as configs
    from ottla.client.admin import feature_levels as feature_levels
    from ottla.client.admin import log_dirs as log_dirs
    from ottla.client.admin import quorum_voters as quorum_voters
    from ottla.client.admin import records as records
    from ottla.client.admin import replicas as replicas
    from ottla.client.admin import topics as topics
    from ottla.client.admin import transaction_states as transaction_states
    from ottla.client.admin.access import acls as acls
    from ottla.client.admin.access import quotas as quotas
    from ottla.client.admin.access import scram as scram
    from ottla.client.admin.access import tokens as tokens
    from ottla.client.admin.groups import describing as describing
    from ottla.client.admin.groups import listing as listing
    from ottla.client.admin.groups import offsets as offsets
    from ottla.client.admin.groups import removal as removal
    from ottla.client.admin.groups import share as share
    from ottla.client.admin.groups import streams as streams
else:
    acls = Family("ottla.client.admin.access.acls")
    quotas = Family("ottla.client.admin.access.quotas")
    scram = Family("ottla.client.admin.access.scram")
    tokens = Family("ottla.client.admin.access.tokens")
    cluster_nodes = Family("ottla.client.admin.cluster_nodes")
    configs = Family("ottla.client.admin.configs")
    feature_levels = Family("ottla.client.admin.feature_levels")
    describing = Family("ottla.client.admin.groups.describing")
    listing = Family("ottla.client.admin.groups.listing")
    offsets = Family("ottla.client.admin.groups.offsets")
    removal = Family("ottla.client.admin.groups.removal")
    share = Family("ottla.client.admin.groups.share")
    streams = Family("ottla.client.admin.groups.streams")
    log_dirs = Family("ottla.client.admin.log_dirs")
    quorum_voters = Family("ottla.client.admin.quorum_voters")
    records = Family("ottla.client.admin.records")
    replicas = Family("ottla.client.admin.replicas")
    topics = Family("ottla.client.admin.topics")
    transaction_states = Family("ottla.client.admin.transaction_states")
