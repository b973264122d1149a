"""Classes that ``load_from`` knows keep their rows in last layers."""

from collections.abc import Sequence
from typing import Any, Optional

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.registry import DATASETS

from mmlinattn.registry import HOOKS
from mmlinattn.weights.class_names import learned_meta
from mmlinattn.weights.class_rows import take_rows


@HOOKS.register_module()
class ClassRowsHook(Hook):
    """Loads the rows of last layers for classes that ``load_from`` and the training
    share, though the model has other classes.

    MMEngine loads no layer of another shape, and any layer of the same shape, whatever
    its classes are. This hook takes classes by their names: COCO's person and car, or
    the classes of an own checkpoint that learns two more. Other rows start with the
    model's initial values. The log says which classes are carried over. The hook does
    nothing in a resumed run and in a test, nor to models whose classes are the same.

    Args:
        data_set (str, optional): A registered data set, such as ``mmdet.CocoDataset``,
            whose classes a checkpoint without names has. Default: none.
    """

    # before an EMAHook, which takes the checkpoint, too
    priority = 'ABOVE_NORMAL'

    def __init__(self, data_set: Optional[str] = None) -> None:
        self.data_set = data_set
        self.line = ''

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Replace the last layers of a checkpoint, before it is loaded."""
        # only training builds the optimizer
        is_training = isinstance(runner.optim_wrapper, OptimWrapper)
        if not is_training or getattr(runner, '_resume', False):
            return
        ours = classes_of(getattr(runner.train_dataloader.dataset, 'metainfo', None))
        theirs = classes_in(checkpoint) or self.known_classes()
        if not ours or not theirs:
            return
        model = runner.model
        model = model.module if is_model_wrapper(model) else model
        rows = take_rows(model, checkpoint, ours, theirs)
        if rows.entries:
            self.line = describe(ours, theirs, rows.classes)

    def before_train(self, runner: Any) -> None:
        """Log which classes were carried over, where the screen shows it."""
        if self.line:
            runner.logger.info(self.line)

    def known_classes(self) -> tuple[str, ...]:
        """Return the classes of the data set that was named."""
        kind = DATASETS.get(self.data_set) if self.data_set else None
        return classes_of(getattr(kind, 'METAINFO', None))


def classes_in(checkpoint: dict) -> tuple[str, ...]:
    """Return the classes that a checkpoint names: MMEngine's, or those of versions
    before."""
    return classes_of(learned_meta(checkpoint)) or classes_of(checkpoint.get('meta'))


def classes_of(meta: Any) -> tuple[str, ...]:
    """Return the names of classes among what is known of data, none if there are
    none."""
    if not isinstance(meta, dict):
        return ()
    classes = meta.get('classes') or meta.get('CLASSES') or ()
    classes = (classes,) if isinstance(classes, str) else classes
    return tuple(map(str, classes)) if isinstance(classes, Sequence) else ()


def describe(
    ours: Sequence[str], theirs: Sequence[str], classes: dict[int, int]
) -> str:
    """Return which classes were carried over, in a line."""
    carried = [
        ours[i] if ours[i] == theirs[j] else f'{ours[i]} ({theirs[j]} there)'
        for i, j in classes.items()
    ]
    anew = [name for i, name in enumerate(ours) if i not in classes]
    return (
        f'classes that load_from knows, whose rows are carried over: '
        f'{", ".join(carried) or "none"}; these start anew: {", ".join(anew) or "none"}'
    )
