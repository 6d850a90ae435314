"""A program that takes the vote from one controller after the other (KIP-853). They ask for it again by themselves.

It is done when every controller has its vote again (`controller.quorum.auto.join.enable`, KIP-1186).
"""

from ottla.client.admin.asking import Asking
from ottla.client.admin.quorum_voters import describe_metadata_quorum, remove_raft_voter
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.workloads.actor import Actor

_PAUSES_MS = (200, 1_000, 4_000)
_CALL_MS = 5_000


class VoterChanger(Actor):
    def _begin_life(self) -> None:
        settings = read_settings(Scope.ADMIN, {**self.client_settings, "default.api.timeout.ms": _CALL_MS}, {})
        self._run(self._change(Asking(Cluster(self.client.world, settings))))

    async def _change(self, asking: Asking) -> None:
        is_done = False
        while not is_done:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            try:
                is_done = await self._look(asking)
            except KafkaError as error:
                self.note_error(error)
        asking.cluster.close()

    async def _look(self, asking: Asking) -> bool:
        voters = (await describe_metadata_quorum(asking)).voters
        if self.is_finishing:
            return [voter.replica_id for voter in voters] == list(self.cluster.settings.controllers())
        if len(voters) > 1:
            voter = self.chance.choice(voters)
            assert voter.directory_id is not None, "voters that are data have one"
            await remove_raft_voter(asking, voter.replica_id, voter.directory_id)
        return False
