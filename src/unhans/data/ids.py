"""Ids that are unique across a corpus, at sixteen to thirty-two bytes a row."""

from __future__ import annotations

from array import array

_FIRST_SIZE = 1 << 12


class UniqueIds:
    """Remembers ids by an eight-byte hash and tells apart those that repeat.

    A set of a million strings would weigh as much as the texts. Two ids among a million share a hash with a
    probability of 3 in 100 million; one of them would get a suffix it does not need.
    """

    def __init__(self) -> None:
        self.n_repeated = 0
        self._slots = array("q", bytes(8 * _FIRST_SIZE))  # open addressing; 0 is free
        self._n = 0
        self._times: dict[str, int] = {}  # how often a repeated id was seen

    def unique(self, wanted: str) -> str:
        """The id itself the first time, then with `#2`, `#3` and so on."""
        if self._add(wanted):
            return wanted
        self.n_repeated += 1
        time = self._times.get(wanted, 1) + 1
        while not self._add(f"{wanted}#{time}"):
            time += 1
        self._times[wanted] = time
        return f"{wanted}#{time}"

    def _add(self, name: str) -> bool:
        """Whether the name is new; it is not any more."""
        if 2 * self._n >= len(self._slots):
            self._grow()
        key = hash(name) or 1
        slot = self._slot(key)
        if self._slots[slot] == key:
            return False
        self._slots[slot] = key
        self._n += 1
        return True

    def _slot(self, key: int) -> int:
        slots, mask = self._slots, len(self._slots) - 1
        slot = key & mask
        while slots[slot] and slots[slot] != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        old, self._slots = self._slots, array("q", bytes(16 * len(self._slots)))
        for key in old:
            if key:
                self._slots[self._slot(key)] = key
