"""What differs between the data of then and of now, in words; or that it cannot be told."""

from collections.abc import Sequence

from crosshatch.data.identity.fingerprint import Fingerprint, NamedFingerprint

MOST_NAMES = 3  # columns that are named in a line


def differences(then: Fingerprint, now: NamedFingerprint) -> tuple[str, ...] | None:
    """What differs, said in a few words each; nothing where the data are the same, None where it cannot be told.

    It cannot be told where the two were made with different keys.

    >>> from crosshatch.data.build import load_dataset
    >>> from crosshatch.data.data_settings import DataSettings, FederationSettings
    >>> from crosshatch.data.identity.owner_key import OwnerKey
    >>> from crosshatch.data.identity.take_fingerprint import take_named
    >>> whole, less = (load_dataset(DataSettings(name="wine", leave_out=names)) for names in ((), ("ash",)))
    >>> then = take_named(less, FederationSettings(), OwnerKey(bytes(32))).fingerprint
    >>> differences(then, take_named(whole, FederationSettings(), OwnerKey(bytes(32))))
    ("column 'ash' is new",)
    >>> print(differences(then, take_named(whole, FederationSettings(), OwnerKey(bytes(31) + b"1"))))
    None
    """
    other = now.fingerprint
    if then.key != other.key:
        return None
    rows = _rows(then, other)
    found = [*rows, *_columns(then, now, same_rows=not rows)]
    if rows:
        return tuple(found)
    if then.labels != other.labels:
        found.append("labels differ")
    if then.split != other.split:
        found.append("other rows are trained, validated or tested on")
    elif then.order != other.order:
        found.append("the rows stand in another order")
    return tuple(found)


def _rows(then: Fingerprint, now: Fingerprint) -> list[str]:
    if then.ids != now.ids:
        return ["the rows had ids" if then.ids else "the rows had no ids"]
    before, after = then.counts["all"], now.counts["all"]
    if before != after:
        return [f"it has {after:,} rows instead of {before:,}"]
    return ["the ids of the rows differ"] if then.ids and then.rows != now.rows else []


def _columns(then: Fingerprint, now: NamedFingerprint, *, same_rows: bool) -> list[str]:
    columns = now.fingerprint.columns
    found = []
    if new := [now.columns[name] for name in columns if name not in then.columns]:
        found.append(f"{_named(new)} {'is' if len(new) == 1 else 'are'} new")
    if gone := len(then.columns.keys() - columns.keys()):
        found.append("a column is gone" if gone == 1 else f"{gone} columns are gone")
    both = [name for name in columns if name in then.columns]
    typed = [name for name in both if then.columns[name].type != columns[name].type]
    if typed:
        found.append(f"{_named([now.columns[name] for name in typed])} {_has(typed)} another type")
    changed = [name for name in both if name not in typed and then.columns[name].values != columns[name].values]
    if same_rows and changed and len(changed) == len(columns) > 1 and not then.ids:
        found.append("the values of all columns differ, or the rows stand in another order")
    elif same_rows and changed:
        found.append(f"{_named([now.columns[name] for name in changed])} {_has(changed)} other values")
    if not found and then.silos != now.fingerprint.silos:
        found += _silos(then, now)
    return found


def _silos(then: Fingerprint, now: NamedFingerprint) -> list[str]:
    if len(then.silos) != len(now.silos):
        return [f"it is divided among {len(now.silos)} silos instead of {len(then.silos)}"]
    other = [name for name, one, two in zip(now.silos, then.silos, now.fingerprint.silos, strict=True) if one != two]
    return [f"silo '{other[0]}' has other columns, or in another order"]


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
