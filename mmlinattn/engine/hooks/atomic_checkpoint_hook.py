"""Checkpoints that survive a killed training."""

from pathlib import Path
from typing import Any, ClassVar

from mmengine.dist import all_gather_object, get_rank, is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook

from mmlinattn.engine.random_state import get_random_state, set_random_state
from mmlinattn.registry import HOOKS
from mmlinattn.utils.files import DRAFTS, whole_file

BACKEND = 'mmlinattn_whole_file'
KEY = 'random_states'


@register_backend(BACKEND)
class WholeFileBackend(LocalBackend):
    """MMEngine's local files, written whole or not at all.

    A removed file stays until :meth:`remove_outdated`: MMEngine's hook removes an old
    checkpoint before it writes the new one.
    """

    outdated: ClassVar[set] = set()

    def put(self, obj: Any, filepath: str) -> None:
        """Write bytes to a file."""
        with whole_file(filepath) as draft:
            draft.write_bytes(obj)
        self.outdated.discard(str(filepath))

    def remove(self, filepath: str) -> None:
        """Mark a file as outdated."""
        self.outdated.add(str(filepath))

    @classmethod
    def remove_outdated(cls) -> None:
        """Remove the marked files."""
        while cls.outdated:
            Path(cls.outdated.pop()).unlink(missing_ok=True)


class _ResumedIterator:
    """A loop's iterator that sets the random state before the first new batch.

    A resumed loop over iterations first skips ``count`` batches that were used before:
    it draws them again or, in newer MMEngine, calls ``skip_iter``.
    """

    def __init__(self, iterator: Any, count: int, state: Any) -> None:
        self.iterator, self.count, self.state = iterator, count, state

    def __iter__(self) -> Any:
        return self

    def skip_iter(self, count: int) -> None:
        self.iterator.skip_iter(count)
        self.count -= count

    def __next__(self) -> Any:
        if self.count == 0:
            # creating the iterator draws a number
            getattr(self.iterator, '_ensure_iterator', bool)()
            set_random_state(self.state)
        self.count -= 1
        return next(self.iterator)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """MMEngine's hook for trainings that may be killed at any moment.

    - A checkpoint is written whole or not at all.
    - An outdated checkpoint, the best one included, is removed after the new one is on
      the disk and named by ``last_checkpoint``.
    - The state of the random generators of all processes is saved and restored, so
      that a resumed training has the same results as an uninterrupted one.
    - Validation restores the random state, because it is not repeated when a training
      is resumed.

    MMEngine itself writes the folders of DeepSpeed, and to file systems that are not
    local. A training that is resumed with another number of processes, or from a
    checkpoint of another hook, has new random numbers, and logs that.

    Workers of a data loader have generators of their own, which start again. For equal
    bits, set ``num_workers=0``.

    Args:
        **kwargs: Arguments of MMEngine's CheckpointHook.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._saved: Any = None  # random states of all processes, to be saved
        self._loaded: Any = None  # random state of this process, to be restored
        self._before_val: Any = None

    def before_train(self, runner: Any) -> None:
        """Select the backend that writes files, and remove drafts."""
        super().before_train(runner)
        if self.file_client_args is None and type(self.file_backend) is LocalBackend:
            self.backend_args = dict(backend=BACKEND)
            self.file_backend: Any = WholeFileBackend()
            self.file_backend.outdated.clear()
            if is_main_process():
                for draft in Path(self.out_dir).glob(DRAFTS):  # of a killed training
                    draft.unlink(missing_ok=True)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Keep the random state of a checkpoint to resume from."""
        if not runner._resume:
            return
        states = checkpoint.get(KEY)
        if states and len(states) == runner.world_size:
            self._loaded = states[get_rank()]
            return
        runner.logger.warning(
            f'The checkpoint has the random state of {len(states or ())} processes, '
            f'not of {runner.world_size}: new random numbers are drawn'
        )

    def before_train_epoch(self, runner: Any) -> None:
        """Restore the random state."""
        if self._loaded is None:
            return
        loop = runner.train_loop
        if hasattr(loop, 'dataloader_iterator'):
            loop.dataloader_iterator = _ResumedIterator(
                loop.dataloader_iterator, loop.iter, self._loaded
            )
        else:
            set_random_state(self._loaded)
        self._loaded = None

    def before_val(self, runner: Any) -> None:
        """Store the random state."""
        self._before_val = get_random_state()

    def after_val(self, runner: Any) -> None:
        """Restore the random state from before the validation."""
        set_random_state(self._before_val)

    def after_val_epoch(self, runner: Any, metrics: Any) -> None:
        """Save the best checkpoint, with the random state before the validation."""
        if self._before_val is not None:
            set_random_state(self._before_val)
        super().after_val_epoch(runner, metrics)

    def before_save_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Add the random states to a checkpoint."""
        checkpoint[KEY] = self._saved

    def _save_best_checkpoint(self, runner: Any, metrics: Any) -> None:
        if self.save_best:
            self._saved = all_gather_object(get_random_state())
            super()._save_best_checkpoint(runner, metrics)
            WholeFileBackend.remove_outdated()

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict) -> None:
        self._saved = all_gather_object(get_random_state())
        super()._save_checkpoint_with_step(runner, step, meta)
        # last_checkpoint names the new one by now
        WholeFileBackend.remove_outdated()
