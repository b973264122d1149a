"""Returns freed memory to the system before the workers of data loaders begin."""

from typing import Any

from mmengine.hooks import Hook

from mmlinattn.registry import HOOKS
from mmlinattn.utils.heap import release_memory


@HOOKS.register_module()
class ReleaseMemoryHook(Hook):
    """Returns freed memory to the system before each epoch, and before and after each
    validation.

    The C library keeps memory that a training has freed. Workers of a data loader are
    copies of the process, made when an epoch or a validation begins, and share its
    memory. As the training goes on, it overwrites what it had freed, and the workers
    keep the old contents: as much memory again on a CPU, until they end.

    This takes tenths of a second, and has an effect with glibc only.
    """

    def before_train_epoch(self, runner: Any) -> None:
        """Return freed memory before workers of the training begin."""
        release_memory()

    def before_val(self, runner: Any) -> None:
        """Return freed memory before workers of the validation begin."""
        release_memory()

    def after_val(self, runner: Any) -> None:
        """Return memory of the validation."""
        release_memory()
