"""Returns freed memory to the system before the workers of data loaders begin."""

from typing import Any

from mmengine.hooks import Hook

from mmlinattn.registry import HOOKS
from mmlinattn.utils.heap import release_memory


@HOOKS.register_module()
class ReleaseMemoryHook(Hook):
    """Returns freed memory to the system before workers of a data loader begin, and
    after each validation.

    The C library keeps memory that a training has freed. Workers of a data loader are
    copies of the process, made when an epoch or a validation begins, and share its
    memory. As the training goes on, it overwrites what it had freed, and the workers
    keep the old contents: as much memory again on a CPU, until they end. A validation
    frees memory in between what a training needs, which makes the heap grow.

    This takes tenths of a second, and has an effect with glibc only.
    """

    def before_train_epoch(self, runner: Any) -> None:
        """Return freed memory if workers of the training begin."""
        if begins_workers(getattr(runner, 'train_dataloader', None)):
            release_memory()

    def before_val(self, runner: Any) -> None:
        """Return freed memory if workers of the validation begin."""
        if begins_workers(getattr(runner, 'val_dataloader', None)):
            release_memory()

    def after_val(self, runner: Any) -> None:
        """Return memory of the validation."""
        release_memory()


def begins_workers(loader: Any) -> bool:
    """Return whether workers begin with the next pass over a data loader, rather than
    going on since the last one; a loop of the user's own may have none."""
    go_on = getattr(loader, 'persistent_workers', False)
    has_begun = getattr(loader, '_iterator', None) is not None
    return getattr(loader, 'num_workers', 0) > 0 and not (go_on and has_begun)
