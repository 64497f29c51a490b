import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.budget import Budget, Charged
from starforge.api.limits_types import RateLimit
from starforge.domain.errors import BeyondBudget, Throttled
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def caller(name: str, token: str | None = None) -> Caller:
    return Caller(Actor(name, ActorKind.TOKEN), Role.VIEWER, token=token)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> Budget:
    return Budget(maximum=100, restore_per_second=10, clock=clock, most=3)


ANN = caller("ann")


def test_what_is_charged_is_told(budget: Budget) -> None:
    assert budget.charge(ANN, 30) == Charged(requested=30, available=70, restore_per_second=10)
    assert budget.charge(ANN, 20).told() == {"requested": 20, "actual": 20, "available": 50, "restorePerSecond": 10}


def test_points_come_back_up_to_the_maximum(budget: Budget, clock: Clock) -> None:
    budget.charge(ANN, 100)
    clock.now += 2.55
    assert budget.available(ANN) == 25
    clock.now += 1_000
    assert budget.available(ANN) == 100


def test_who_has_too_few_is_told_for_how_long_and_charged_nothing(budget: Budget, clock: Clock) -> None:
    budget.charge(ANN, 95)
    with pytest.raises(Throttled, match=r"costs 30 points and you have 5 left\. Try again in 2\.5 seconds") as refused:
        budget.charge(ANN, 30)
    assert (refused.value.retryable, refused.value.retry_after_s) == (True, 2.5)
    clock.now += 2.5
    assert budget.charge(ANN, 30).available == 0


def test_what_can_never_be_paid_is_refused_for_good(budget: Budget) -> None:
    with pytest.raises(BeyondBudget, match="costs 101 points, and you have at most 100") as refused:
        budget.charge(ANN, 101)
    assert not refused.value.retryable
    assert refused.value.retry_after_s is None
    assert budget.available(ANN) == 100


def test_every_token_has_its_own_bucket(budget: Budget) -> None:
    budget.charge(caller("ann", "t1"), 100)
    assert budget.available(caller("ann", "t2")) == 100
    assert budget.available(ANN) == 100
    assert budget.available(caller("bob", "t1")) == 0, "a token is one caller, whatever it is called"


def test_buckets_are_bounded_and_the_longest_unused_goes_first(budget: Budget) -> None:
    for name in ("a", "b", "c"):
        budget.charge(caller(name), 100)
    budget.available(caller("a"))
    budget.charge(caller("d"), 100)
    assert [budget.available(caller(name)) for name in ("a", "c", "d")] == [0, 0, 0]
    assert budget.available(caller("b")) == 100


def test_the_schema_tells_it(budget: Budget) -> None:
    budget.charge(ANN, 30)
    assert RateLimit.of(budget, ANN) == RateLimit(maximum=100, available=70, restore_per_second=10)


@given(
    st.lists(st.tuples(st.integers(0, 120), st.floats(0, 20)), max_size=30),
    st.integers(1, 7),
)
def test_nobody_gets_more_than_the_bucket_and_what_came_back(asked: list[tuple[int, float]], rate: int) -> None:
    clock = Clock()
    budget, spent, began = Budget(maximum=100, restore_per_second=rate, clock=clock), 0, clock.now
    for points, wait in asked:
        clock.now += wait
        try:
            spent += budget.charge(ANN, points).requested
        except Throttled as refused:
            clock.now += refused.retry_after_s or 0
            spent += budget.charge(ANN, points).requested
        except BeyondBudget:
            assert points > 100
    assert spent <= 100 + (clock.now - began) * rate + 0.001
