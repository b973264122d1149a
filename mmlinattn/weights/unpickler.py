"""Unpickles checkpoints without running code in them.

torch.load(weights_only=True) does so for tensors and plain data, but torch 2.1 can't
allow the classes that MMEngine writes beside them. torch.load takes :func:`make_module`
as its ``pickle_module``. In every version, it looks up a name in a list of functions
and classes that only build data, and compares claimed with stored sizes.
"""

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from .storages import REBUILDERS as CHECKED
from .storages import Storages

NUMPY_CORE = ('numpy.core', 'numpy._core')
REBUILDERS = (
    '_rebuild_parameter',
    '_rebuild_tensor',
    '_rebuild_tensor_v2',
    '_rebuild_meta_tensor_no_storage',
)
CONFIG = 'mmengine.config.config.ConfigDict'
BUFFER = 'mmengine.logging.history_buffer.HistoryBuffer'
# methods that are part of a written HistoryBuffer
STATISTICS = ('current', 'max', 'mean', 'min')
GETATTR = ('builtins.getattr', '__builtin__.getattr')
NEW_ARRAY = tuple(f'{core}.multiarray._reconstruct' for core in NUMPY_CORE)
ALLOWED = {
    'argparse.Namespace',
    # protocol 2 writes bytes this way
    '_codecs.encode',
    *(
        f'{module}.{name}'
        for module in ('builtins', '__builtin__')
        for name in ('bytearray', 'bytes', 'complex', 'frozenset', 'set', 'slice')
    ),
    # the milestones of a schedule
    'collections.Counter',
    'collections.OrderedDict',
    'collections.defaultdict',
    *(f'builtins.{name}' for name in ('dict', 'int', 'float', 'list', 'str', 'tuple')),
    # the state of a loss and of a config
    CONFIG,
    BUFFER,
    *(f'{BUFFER}.{name}' for name in STATISTICS),
    'numpy.dtype',
    *(f'{core}.multiarray.scalar' for core in NUMPY_CORE),
    *(f'torch._utils.{name}' for name in REBUILDERS),
    'torch.Size',
    'torch.device',
    'torch.nn.parameter.Parameter',
    'torch.serialization._get_layout',
}


class Options(dict):
    """Stands for the config that the code of Swin and its descendants saves."""


class Uncallable:
    """Stands for a class that a file may name, but not call: a call of the class would
    return memory that nobody fills."""

    __slots__ = ()


UNTYPED, ARRAY = Uncallable(), Uncallable()
STAND_INS = {
    'yacs.config.CfgNode': Options,
    'torch.UntypedStorage': UNTYPED,
    'torch.storage.UntypedStorage': UNTYPED,
    'numpy.ndarray': ARRAY,
}


class HistoryBuffer:
    """Stands for MMEngine's record of a scalar where MMEngine is not installed, without
    its statistics."""

    __module__ = BUFFER.rpartition('.')[0]
    current = max = mean = min = None


OF_MMENGINE = {
    CONFIG: Options,
    BUFFER: HistoryBuffer,
    **{f'{BUFFER}.{name}': None for name in STATISTICS},
}


class ForbiddenClass(pickle.UnpicklingError):
    """A checkpoint names code that is not known to be harmless."""

    def __init__(self, name: str) -> None:
        super().__init__(f'it holds a {name}')
        self.name = name


def is_allowed(module: str, name: str) -> bool:
    """Return True for a class or function that only builds data. Storages of types such
    as FloatStorage do not come here, because torch reads their names itself."""
    if module == 'torch' and isinstance(getattr(torch, name, None), torch.dtype):
        return True
    return f'{module}.{name}' in ALLOWED


def get_statistic(owner: type, name: str) -> Any:
    """Replace ``getattr``: return methods of a HistoryBuffer only."""
    full_name = (
        f'{getattr(owner, "__module__", "")}.{getattr(owner, "__name__", owner)}'
    )
    if full_name != BUFFER or name not in STATISTICS:
        raise ForbiddenClass(f'getattr of {full_name}, {name!r}')
    return getattr(owner, name)


_Unpickler: Any = pickle._Unpickler  # its methods have no types


class CheckedUnpickler(_Unpickler):
    """An unpickler of any names, whose tensors are inside of what a file stores."""

    storages: Storages

    def find_class(self, module: str, name: str) -> Any:
        return CHECKED.get(f'{module}.{name}') or super().find_class(module, name)

    @property
    def persistent_load(self) -> Callable[[Any], Any]:
        """torch's function from a claim to a storage, behind a check of the claim."""
        return self.load_storage

    @persistent_load.setter
    def persistent_load(self, load: Callable[[Any], Any]) -> None:
        def load_storage(claim: Any) -> Any:
            if isinstance(claim, tuple):
                claim = tuple(
                    torch.UntypedStorage if part is UNTYPED else part for part in claim
                )
            self.storages.check_claim(claim)
            return load(claim)

        self.load_storage = load_storage


class Unpickler(CheckedUnpickler):
    """An unpickler of the names in ALLOWED and STAND_INS and of types of tensors.

    Attributes are set only on objects that the file makes, never on those that it finds
    by name. Only the unpickler in Python can check that.
    """

    dispatch = dict(_Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        if f'{module}.{name}' in GETATTR:
            return get_statistic
        if f'{module}.{name}' in STAND_INS:
            return STAND_INS[f'{module}.{name}']
        if f'{module}.{name}' in NEW_ARRAY:
            return self.reconstruct
        if not is_allowed(module, name):
            raise ForbiddenClass(f'{module}.{name}')
        try:
            return super().find_class(module, name)
        except ModuleNotFoundError:
            if f'{module}.{name}' not in OF_MMENGINE:
                raise
            return OF_MMENGINE[f'{module}.{name}']

    def reconstruct(self, kind: Any, shape: Any, dtype: Any) -> Any:
        """Return the empty array, as which every array of NumPy begins in a pickle."""
        if kind is not ARRAY or shape != (0,):
            raise ForbiddenClass(f'NumPy array of shape {shape} without numbers')
        array = super().find_class('numpy', 'ndarray')
        return array(shape, dtype)

    def load_build(self) -> None:
        if callable(self.stack[-2]):
            raise ForbiddenClass(f'change of {self.stack[-2]!r}')
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def make_module(stored: Storages, trust: bool) -> Any:
    """Return a stand-in for the module :mod:`pickle`, for the file of these storages.

    Args:
        stored: The storages of the file.
        trust: Whether names of any functions and classes are allowed.
    """
    base = CheckedUnpickler if trust else Unpickler

    class OfFile(base):  # type: ignore[misc, valid-type]
        storages = stored

    def load(file: Any, **options: Any) -> Any:
        loaded = OfFile(file, **options).load()
        if stored.claimed:  # the list of the storages behind the first pickle
            stored.check_stored(loaded)
        return loaded

    module: Any = ModuleType('mmlinattn_pickle')
    module.Unpickler, module.load = OfFile, load
    return module
