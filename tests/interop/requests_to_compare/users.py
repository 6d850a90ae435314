"""SCRAM credentials (KIP-554): kept, shown and removed. Only how they were made is shown, never a key."""

from ottla.wire.messages import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from tests.interop.compared_nodes import Step, ask

SHA_256, SHA_512, NO_MECHANISM = 1, 2, 9

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion


def upsert(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted")


def delete(name: str, mechanism: int = SHA_256) -> Deletion:
    return Deletion(name=name, mechanism=mechanism)


def alter(*changes: Upsertion | Deletion) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, Deletion)],
        upsertions=[change for change in changes if isinstance(change, Upsertion)],
    )


def describe(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(
        users=[DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    )


def users() -> list[Step]:
    requests = [
        DescribeUserScramCredentialsRequest(users=None),
        describe("alice"),
        alter(upsert("alice"), upsert("bob", SHA_512, 8192)),
        alter(upsert("alice", SHA_512)),
        DescribeUserScramCredentialsRequest(users=None),
        describe("alice", "bob", "bob", "nobody"),
        describe(),
        alter(upsert("carol", iterations=1)),
        alter(upsert("carol", iterations=16385)),
        alter(upsert("carol", NO_MECHANISM)),
        alter(upsert("")),
        alter(upsert("carol"), upsert("carol", SHA_512)),
        alter(delete("alice"), upsert("alice")),
        alter(delete("nobody")),
        alter(delete("bob", SHA_256)),
        alter(delete("bob", NO_MECHANISM)),
        alter(delete("")),
        alter(),
        alter(delete("bob", SHA_512), delete("alice"), upsert("dora")),
        DescribeUserScramCredentialsRequest(users=None),
    ]
    return [step for request in requests for step in ask(request, 0)]
