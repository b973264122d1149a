"""Counts the operators that a model dispatches, which a GPU's host launches."""

from collections import Counter

from torch.utils._python_dispatch import TorchDispatchMode

# they move no data, and PyTorch does not call them views
NO_KERNELS = ('_unsafe_view', 'empty', '_reshape_alias', 'empty_like')


class Launches(TorchDispatchMode):
    """Counts operators by name, views apart from those that compute.

    Attributes:
        names (Counter): Operators that compute, each a kernel of a GPU or a few.
        views (Counter): Operators that only describe memory anew.
    """

    def __init__(self):
        super().__init__()
        self.names, self.views = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        is_view = func.is_view or name in NO_KERNELS
        (self.views if is_view else self.names)[name] += 1
        return out

    @property
    def counts(self):
        """Operators without views, and with them."""
        return self.names.total(), self.names.total() + self.views.total()
