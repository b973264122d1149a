"""Compares what the pickle of a checkpoint claims of its storages with what is stored.

A storage is the memory of tensors. torch.load of torch 2.1 believes the pickle: of a
storage that claims more numbers than its record holds, it returns the memory behind the
record, or crashes.
"""

import pickle
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FOLDER = '/data/'  # of a zip file's records of storages


class Storages:
    """The storages of a file of torch.save.

    Args:
        path: Its path.
        is_zip: Whether it is a zip file, with a record for each storage. Others have
            all storages in a row behind the pickle.
    """

    def __init__(self, path: Path, is_zip: bool) -> None:
        self.is_zip = is_zip
        # bytes by key; in torch's reader, upper and lower case are the same
        self.sizes: dict[str, int] = {}
        self.claimed: dict[str, int] = {}
        self.unclaimed = path.stat().st_size
        if not is_zip:
            return
        with zipfile.ZipFile(path) as archive:
            for record in archive.infolist():
                key = record.filename.partition(FOLDER)[2].casefold()
                size = min(record.file_size, self.sizes.get(key, record.file_size))
                self.sizes[key] = size

    def check_claim(self, claim: Any) -> None:
        """Compare a persistent id of the pickle with the file.

        Raises:
            UnpicklingError: If it claims a storage of more bytes than are stored.
        """
        if not isinstance(claim, tuple) or claim[0] not in ('storage', b'storage'):
            return  # torch refuses it, or it has no memory
        kind, key, _, length = claim[1:5]
        untyped = kind is torch.UntypedStorage
        size = length * (1 if untyped else torch.empty((), dtype=kind.dtype).itemsize)
        if self.is_zip:
            stored = self.sizes.get(str(key).casefold(), 0)
        else:
            stored = self.unclaimed + self.claimed.get(key, 0)
            self.unclaimed -= size - self.claimed.get(key, 0)
        self.claimed[key] = size
        if not 0 <= size <= stored:
            raise pickle.UnpicklingError(
                f'storage {key!r} claims {size} bytes, and the file holds {stored}: '
                'it is damaged or was made to do harm'
            )

    def check_stored(self, keys: Iterable[str]) -> None:
        """Compare the keys of the storages behind a pickle with those that it claims.

        Raises:
            UnpicklingError: If one is missing, whose memory nobody would fill.
        """
        missing = sorted(map(repr, self.claimed.keys() - set(keys)))
        if missing:
            raise pickle.UnpicklingError(
                f'storage {missing[0]} is not stored: the file is damaged or was made '
                'to do harm'
            )


def check_view(
    storage: Any, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> None:
    """Raise an UnpicklingError for a tensor beyond its storage, which torch would
    enlarge by memory that nobody fills."""
    if not isinstance(storage, torch.storage.TypedStorage):
        raise pickle.UnpicklingError(f'a tensor in a {type(storage).__name__}')
    untyped = storage._untyped_storage
    there = untyped.nbytes() // torch.empty((), dtype=storage.dtype).itemsize
    steps = ((size - 1) * stride for size, stride in zip(shape, strides))
    needed = 0 if 0 in shape else 1 + offset + sum(steps)
    if min(0, offset, *shape, *strides) < 0 or needed > there:
        raise pickle.UnpicklingError(
            f'a tensor of shape {tuple(shape)} needs {needed} numbers, and its storage '
            f'has {there}: the file is damaged or was made to do harm'
        )


def rebuild_tensor(storage: Any, offset: int, *view: Any) -> Tensor:
    """:func:`torch._utils._rebuild_tensor` of a tensor inside of its storage."""
    check_view(storage, offset, *view)
    return torch._utils._rebuild_tensor(storage, offset, *view)


def rebuild_tensor_v2(
    storage: Any,
    offset: int,
    shape: Sequence[int],
    strides: Sequence[int],
    *others: Any,
) -> Tensor:
    """:func:`torch._utils._rebuild_tensor_v2` of a tensor inside of its storage."""
    check_view(storage, offset, shape, strides)
    return torch._utils._rebuild_tensor_v2(storage, offset, shape, strides, *others)


# by the names in a pickle
REBUILDERS = {
    'torch._utils._rebuild_tensor': rebuild_tensor,
    'torch._utils._rebuild_tensor_v2': rebuild_tensor_v2,
}
