"""The jobs of a busy cluster: valid, varied, repeatable."""

from itertools import islice

import pytest

from starforge.adapters.simulated.busy import submissions
from starforge.domain.capsule import INLINE_LIMITS, code_problems
from starforge.domain.spec_rules import freeze
from tests.unit.simulated.lives import DEFAULTS


def test_the_same_seed_gives_the_same_jobs() -> None:
    one, same, other = (list(islice(submissions(20, seed), 50)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_every_job_would_be_taken() -> None:
    for job in islice(submissions(20, seed=1), 300):
        assert freeze(job.submission.draft, DEFAULTS).project
        assert isinstance(job.submission.code, tuple)
        files = [(file.path, len(file.content)) for file in job.submission.code]
        assert not code_problems(files, INLINE_LIMITS)


def test_the_code_is_python() -> None:
    for job in islice(submissions(20, seed=1), 100):
        assert isinstance(job.submission.code, tuple)
        for file in job.submission.code:
            if file.path.endswith(".py"):
                compile(file.content, file.path, "exec")


def test_jobs_are_varied() -> None:
    drafts = [(job.submission.draft, job.cancel_after_s) for job in islice(submissions(20, seed=1), 300)]
    assert len({draft.project for draft, _ in drafts}) == 4
    assert {pool.series for draft, _ in drafts for pool in draft.pools} == {"h200", "b200", "gb300"}
    assert {len(draft.pools) for draft, _ in drafts} == {1, 2}
    assert 5 < sum(cancel is not None for _, cancel in drafts) < 60


def test_the_first_ones_come_at_once_and_the_others_at_a_pace() -> None:
    gaps = [job.after_s for job in islice(submissions(50, seed=1), 1050)]
    assert gaps[:50] == [0.0] * 50
    assert 2.0 < sum(gaps[50:]) / 1000 < 5.0


def test_a_busy_cluster_has_jobs() -> None:
    with pytest.raises(ValueError, match="1 job or more"):
        next(submissions(0, seed=1))
