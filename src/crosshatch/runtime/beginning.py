"""What a party begins from: nothing, its newest state, or the one that all begin again at. Else it says nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from crosshatch.errors import RunError
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.mail import BEGIN_AGAIN
from crosshatch.parties.recovery.packed_state import StoredState, pieces, unpack
from crosshatch.private_randomness import PrivateSeed
from crosshatch.runtime.kernels import differences
from crosshatch.runtime.store import Store


@dataclass(frozen=True)
class Beginning:
    """What is asked of a party of a run at its start.

    `again` has the rounds at which all have begun again, by decision, in order; `anywhere` allows a round to be run
    again under another fingerprint than `here`.
    """

    run: str
    here: Mapping[str, str]
    again: tuple[int, ...] = ()
    anywhere: bool = False

    def state_of(self, party: Party, store: Store) -> StoredState:
        """Its state, on disk as it is handed out; a RunError names what is wrong with it and what to do."""
        found = self._newest(party, store)
        if found is None:
            first = StoredState(self.run, party.name, 0, party.state(), secret=PrivateSeed.fresh("").secret)
            return self._write(first, store)
        if found.again > len(self.again):
            raise RunError(
                f"{party.name}: all have begun again {found.again} times by its state, {len(self.again)} times by what "
                "it is told: give it the plan of this run"
            )
        if not (found.clean or self.anywhere):
            self._require_same_processor(found)
        same = found.fingerprint == dict(self.here)
        return found if same and not found.clean else self._write(found, store)

    def _newest(self, party: Party, store: Store) -> StoredState | None:
        """None: it has not begun."""
        written, name = store.read(), party.name
        if self.again and not self._has_begun_again(written, name):
            return self._copy(party, store, self.again[-1])
        if written is not None:
            return unpack(written, run=self.run, party=name)
        if store.begun:
            raise RunError(f"{name}: its state is gone from {store.folder}: restore it, or {BEGIN_AGAIN}{kept(store)}")
        return None

    def _has_begun_again(self, written: bytes | None, name: str) -> bool:
        """Whether its newest state is from after the last time that all began again; a damaged one is not."""
        try:
            return written is not None and unpack(written, run=self.run, party=name).again == len(self.again)
        except RunError:
            return False

    def _copy(self, party: Party, store: Store, round: int) -> StoredState:
        """The state that was kept of a round, as if everybody had stored just that: nothing of before is needed."""
        written, name = store.read(round), party.name
        if party.follows is not None:  # it needs to know the round alone
            fresh = StoredState(self.run, name, round, {**party.state(), "round": round})
            return replace(fresh, secret=PrivateSeed.fresh("").secret, again=len(self.again), clean=True)
        if written is None:
            raise RunError(f"{name} has kept no state of round {round}: choose another ROUND{kept(store)}")
        found = unpack(written, run=self.run, party=name)
        store.forget_after(round)
        return replace(found, sent={}, heard={}, again=len(self.again), clean=True)

    def _require_same_processor(self, found: StoredState) -> None:
        other = differences(found.fingerprint, self.here)
        if other:
            raise RunError(
                f"{found.party} crashed in round {found.round} or later, and what it would run again may come out with "
                f"other last digits here: {other}: go on where it was, allow it (--anywhere), or {BEGIN_AGAIN}"
            )

    def _write(self, state: StoredState, store: Store) -> StoredState:
        """On disk before anything of it is said."""
        state = replace(state, clean=False, fingerprint=dict(self.here))
        store.begin(pieces(state), lambda _: None, state.round)
        store.finish()
        return state


def kept(store: Store) -> str:
    """Of which rounds copies are there, in brackets."""
    rounds = store.copies()
    return f" (kept there: {', '.join(map(str, rounds))})" if rounds else " (none is kept there)"
