"""A fleet tells all of its nodes once, and then what has changed."""

from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.capacity.telling import NodeTeller
from tests.unit.capacity.grounds import AT, node


def test_all_is_told_once_and_then_what_changed_or_went() -> None:
    teller, a, b = NodeTeller(), node("a"), node("b")
    assert list(teller.tell([a, b], AT)) == [NodesSeen(AT, (a, b), whole=True)]
    assert list(teller.tell([a, b], AT)) == []
    cordoned = node("a", cordoned=True)
    assert list(teller.tell([cordoned, b], AT)) == [NodesSeen(AT, (cordoned,))]
    assert list(teller.tell([cordoned], AT)) == [NodesSeen(AT, (), ("b",))]
    assert list(NodeTeller().tell([], AT)) == [NodesSeen(AT, (), whole=True)]
