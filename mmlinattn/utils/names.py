"""Names of entries: those under a prefix, numbers of blocks, a few of them in words."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

T = TypeVar('T')


def inside(entries: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Return the entries under a prefix, with the prefix removed."""
    return {
        key[len(prefix) :]: value
        for key, value in entries.items()
        if key.startswith(prefix)
    }


def shortlist(names: Iterable) -> str:
    """Return the number of names and the first few of them."""
    names = [str(name) for name in names]
    shown = names[:3] + ['...'] * (len(names) > 3)
    return f'{len(names)} ({", ".join(shown)})' if names else '0'


def count_blocks(
    keys: Collection[str], prefix: str, inner: str = '', least: int = 1
) -> int:
    """Return number of blocks below a prefix, up to the last one with a match of
    ``inner``.

    It is ``least`` if there are none: with 1, they are reported as missing.
    """
    matches = (re.match(rf'{re.escape(prefix)}(\d+)\.{inner}', key) for key in keys)
    return max((int(match[1]) + 1 for match in matches if match), default=least)
