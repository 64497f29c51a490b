"""prepareCode: here already, or where to send it; safe to repeat."""

import pytest

from starforge.domain.actions.package import upload_key
from starforge.domain.actions.prepare_code import UPLOAD_S, Announced, prepare_code
from starforge.domain.capsule import CODE_LIMITS, code_key
from starforge.domain.errors import CodeRefused
from starforge.domain.names import Digest
from tests.unit.actions.fakes import START
from tests.unit.actions.world import World

CODE = Announced(Digest("a" * 64), "b" * 64, 100, 1)


def test_code_that_is_new_gets_a_place_to_be_sent_to(world: World) -> None:
    signed = prepare_code(world.ports, CODE)
    assert signed is not None
    assert upload_key(CODE.transport_sha256) in signed.url
    assert (signed.expires_at - START).total_seconds() == UPLOAD_S
    upload = world.sql.upload(CODE.digest)
    assert upload is not None
    assert upload.transport_sha256 == CODE.transport_sha256
    assert prepare_code(world.ports, CODE) == signed


def test_code_that_is_here_needs_not_be_sent(world: World) -> None:
    job = world.job(world.pending())
    assert job.code
    here = Announced(job.code, "b" * 64, 100, 1)
    assert prepare_code(world.ports, here) is None
    del world.objects.objects[code_key(job.code)]
    assert prepare_code(world.ports, here) is not None


@pytest.mark.parametrize(
    ("code", "field"),
    [
        (Announced(Digest("a" * 63), "b" * 64, 1, 1), "digest"),
        (Announced(Digest("a" * 64 + "\n"), "b" * 64, 1, 1), "digest"),
        (Announced(Digest("a" * 64), "../" + "b" * 61, 1, 1), "transportSha256"),
        (Announced(Digest("a" * 64), "B" * 64, 1, 1), "transportSha256"),
        (Announced(Digest("a" * 64), "b" * 64, CODE_LIMITS.bytes + 1, 1), "code"),
        (Announced(Digest("a" * 64), "b" * 64, 1, CODE_LIMITS.files + 1), "code"),
    ],
)
def test_what_can_be_no_code_is_refused(world: World, code: Announced, field: str) -> None:
    with pytest.raises(CodeRefused) as caught:
        prepare_code(world.ports, code)
    assert [problem.field for problem in caught.value.problems] == [(field,)]
    assert world.sql.upload(code.digest) is None
