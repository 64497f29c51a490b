"""Whatever a fleet has at a time, who puts together what was told of it has the same."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.capacity.nodes import NodesSeen, NodeView
from starforge.domain.capacity.telling import NodeTeller
from tests.unit.capacity.grounds import AT, node

a_fleet = st.lists(
    st.builds(node, st.sampled_from(["a", "b", "c", "d"]), gpus=st.integers(0, 2)),
    max_size=4,
    unique_by=lambda view: view.name,
)


@given(st.lists(a_fleet, min_size=1, max_size=6))
def test_what_was_told_adds_up_to_what_is_there(fleets: Sequence[list[NodeView]]) -> None:
    teller, known = NodeTeller(), dict[str, NodeView]()
    for number, nodes in enumerate(fleets):
        told = list(teller.tell(nodes, AT + timedelta(seconds=number)))
        assert [seen.whole for seen in told] == ([True] if number == 0 else [False] * len(told))
        for seen in told:
            assert seen.at == AT + timedelta(seconds=number)
            assert not any(known.get(view.name) == view for view in seen.nodes)
            assert known.keys() >= set(seen.gone)
            known |= {view.name: view for view in seen.nodes}
            known = {name: view for name, view in known.items() if name not in seen.gone}
        assert known == {view.name: view for view in nodes}
        assert list(teller.tell(nodes, AT)) == []


def test_a_node_that_comes_back_is_told_again_and_those_gone_are_in_name_order() -> None:
    teller, a, b = NodeTeller(), node("a"), node("b")
    list(teller.tell([b, a], AT))
    assert list(teller.tell([], AT)) == [NodesSeen(AT, (), ("a", "b"))]
    assert list(teller.tell([b], AT)) == [NodesSeen(AT, (b,))]


def test_tellers_know_nothing_of_each_other() -> None:
    list(NodeTeller().tell([node("a")], AT))
    assert list(NodeTeller().tell([node("a")], AT)) == [NodesSeen(AT, (node("a"),), whole=True)]
