"""The groups of one gateway."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from starforge.api.transport.counting import Counts
from starforge.api.transport.group import Group
from starforge.api.transport.openings import Run


@dataclass
class Groups(Counts):
    """The groups of one gateway, by what their members have in common."""

    _by_key: dict[Hashable, Group] = field(default_factory=dict)

    def group(self, key: Hashable, run: Run) -> Group:
        """The group of `key`, made with `run` if there is none, with one user more."""
        known = self._by_key.get(key)
        if known is None:
            known = self._by_key[key] = Group(run, lambda group: self._forget(key, group), self)
        known.use()
        return known

    def _forget(self, key: Hashable, group: Group) -> None:
        """A group that ended late is no longer the one of its key."""
        if self._by_key.get(key) is group:
            del self._by_key[key]

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def members(self) -> int:
        return sum(group.size for group in self._by_key.values())
