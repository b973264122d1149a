"""Unpickles checkpoints without running code in them.

torch.load(weights_only=True) does so for tensors and plain data, but torch 2.1 can't
allow the classes that MMEngine writes beside them. torch.load takes this module as its
``pickle_module``. In every version, it looks up a name in a list of functions and
classes that only build data.
"""

import pickle
from typing import Any

import torch

NUMPY_CORE = ('numpy.core', 'numpy._core')
REBUILDERS = (
    '_rebuild_parameter',
    '_rebuild_tensor',
    '_rebuild_tensor_v2',
    '_rebuild_meta_tensor_no_storage',
)
BUFFER = 'mmengine.logging.history_buffer.HistoryBuffer'
# methods that are part of a written HistoryBuffer
STATISTICS = ('current', 'max', 'mean', 'min')
GETATTR = ('builtins.getattr', '__builtin__.getattr')
ALLOWED = {
    'argparse.Namespace',
    # protocol 2 writes bytes this way
    '_codecs.encode',
    *(
        f'{module}.{name}'
        for module in ('builtins', '__builtin__')
        for name in ('bytearray', 'complex', 'frozenset', 'set', 'slice')
    ),
    # the milestones of a schedule
    'collections.Counter',
    'collections.OrderedDict',
    'collections.defaultdict',
    *(f'builtins.{name}' for name in ('dict', 'int', 'float', 'list', 'str', 'tuple')),
    # the state of a loss and of a config
    'mmengine.config.config.ConfigDict',
    BUFFER,
    *(f'{BUFFER}.{name}' for name in STATISTICS),
    'numpy.dtype',
    'numpy.ndarray',
    *(f'{core}.multiarray._reconstruct' for core in NUMPY_CORE),
    *(f'{core}.multiarray.scalar' for core in NUMPY_CORE),
    *(f'torch._utils.{name}' for name in REBUILDERS),
    'torch.Size',
    'torch.device',
    'torch.nn.parameter.Parameter',
    'torch.serialization._get_layout',
}


class Options(dict):
    """Stands for the config that the code of Swin and its descendants saves."""


STAND_INS = {'yacs.config.CfgNode': Options}


class ForbiddenClass(pickle.UnpicklingError):
    """A checkpoint names code that is not known to be harmless."""

    def __init__(self, name: str) -> None:
        super().__init__(f'it holds a {name}')
        self.name = name


def is_allowed(module: str, name: str) -> bool:
    """True for a class or function that only builds data."""
    if module in ('torch', 'torch.cuda', 'torch.storage') and name.isidentifier():
        attribute = getattr(torch, name, None)
        if isinstance(attribute, torch.dtype) or name.endswith('Storage'):
            return True
    return f'{module}.{name}' in ALLOWED


def get_statistic(owner: type, name: str) -> Any:
    """Replaces ``getattr``: returns methods of a HistoryBuffer only."""
    full_name = (
        f'{getattr(owner, "__module__", "")}.{getattr(owner, "__name__", owner)}'
    )
    if full_name != BUFFER or name not in STATISTICS:
        raise ForbiddenClass(f'getattr of {full_name}, {name!r}')
    return getattr(owner, name)


_Unpickler: Any = pickle._Unpickler  # its methods have no types


class Unpickler(_Unpickler):
    """An unpickler of the names in ALLOWED, of storages and of types of tensors.

    Attributes are set only on objects that the file makes, never on those that it finds
    by name. Only the unpickler in Python can check that.
    """

    dispatch = dict(_Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        if f'{module}.{name}' in GETATTR:
            return get_statistic
        if f'{module}.{name}' in STAND_INS:
            return STAND_INS[f'{module}.{name}']
        if not is_allowed(module, name):
            raise ForbiddenClass(f'{module}.{name}')
        return super().find_class(module, name)

    def load_build(self) -> None:
        if callable(self.stack[-2]):
            raise ForbiddenClass(f'change of {self.stack[-2]!r}')
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def load(file: Any, **options: Any) -> Any:
    """:func:`pickle.load` with :class:`Unpickler`."""
    return Unpickler(file, **options).load()
