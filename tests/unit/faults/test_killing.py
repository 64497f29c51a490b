"""The order in which processes are killed can be had again."""

from itertools import islice

from tests.e2e.faults.processes import AWAY_S, KILL_EVERY_S, OURS, order


def test_a_seed_gives_an_order() -> None:
    first, again, other = (list(islice(order(seed, sorted(OURS)), 200)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_process_of_ours_has_its_turn() -> None:
    kills = list(islice(order(1, sorted(OURS)), 200))
    assert {kill.name for kill in kills} == {"api", "worker", "beat", "watch"}
    assert all(KILL_EVERY_S[0] <= kill.after_s <= KILL_EVERY_S[1] for kill in kills)
    assert all(AWAY_S[0] <= kill.away_s <= AWAY_S[1] for kill in kills)
    assert all(0 <= kill.nth < 1 for kill in kills)
