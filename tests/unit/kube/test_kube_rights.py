"""The rights that are asked for are those that deploy/rbac.yaml grants, no more and no fewer."""

from pathlib import Path

import yaml

from starforge.adapters.kube.rights import RIGHTS, Right

RBAC = Path(__file__).parents[3] / "deploy/rbac.yaml"


def granted() -> set[Right]:
    found = set()
    for document in yaml.safe_load_all(RBAC.read_text()):
        cluster = document["kind"] == "ClusterRole"
        for rule in document.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [None]):
                        found |= {Right(verb, group, resource, name, cluster) for verb in rule["verbs"]}
    return found


def test_what_is_asked_for_is_what_is_granted() -> None:
    assert set(RIGHTS) == granted()


def test_no_right_is_asked_for_twice() -> None:
    assert len(RIGHTS) == len(set(RIGHTS))


def test_a_right_is_asked_for_where_it_counts() -> None:
    assert Right("get", "", "pods/log").asked("ns") == {
        "verb": "get", "group": "", "resource": "pods", "subresource": "log", "namespace": "ns",
    }  # fmt: skip
    definition = Right("get", "apiextensions.k8s.io", "customresourcedefinitions", "rayjobs.ray.io", cluster=True)
    asked = definition.asked("ns")
    assert (asked["name"], "namespace" in asked, "subresource" in asked) == ("rayjobs.ray.io", False, False)
    assert (definition.told, Right("get", "", "pods/log").told) == (
        "customresourcedefinitions.apiextensions.k8s.io", "pods/log",
    )  # fmt: skip


def test_each_right_is_told_by_words_of_its_own() -> None:
    """Whether we may watch Pods of our namespace and those of all are two questions."""
    assert len({(right.verb, right.told) for right in RIGHTS}) == len(RIGHTS)
    assert Right("watch", "", "pods", cluster=True).told == "pods of all namespaces"
    assert Right("watch", "", "nodes", cluster=True).told == "nodes"
