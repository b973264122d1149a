"""Checkpoints that survive a killed training."""

import inspect
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from mmengine.dist import all_gather_object, get_rank, is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook

from mmlinattn.engine.random_state import get_random_state, set_random_state
from mmlinattn.registry import HOOKS
from mmlinattn.utils.config_keys import did_you_mean
from mmlinattn.utils.files import DRAFTS, whole_file

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

BACKEND = 'mmlinattn_whole_file'
KEY = 'random_states'


@register_backend(BACKEND)
class WholeFileBackend(LocalBackend):
    """MMEngine's local files, written whole or not at all.

    What is removed stays until the next file is there: MMEngine's hook removes an old
    checkpoint before it writes the new one.
    """

    outdated: ClassVar[set] = set()

    def put(self, obj, filepath):
        """Writes a file of some bytes, and removes outdated ones."""
        with whole_file(filepath) as draft:
            draft.write_bytes(obj)
        for path in self.outdated - {str(filepath)}:
            Path(path).unlink(missing_ok=True)
        self.outdated.clear()

    def remove(self, filepath):
        """Marks a file as outdated."""
        self.outdated.add(str(filepath))


class _ThenRestore:
    """A loop's iterator that sets the random state before the batch to go on with.

    A loop over iterations first passes over ``count`` batches that were used before: by
    drawing them again, or, in newer MMEngine, by ``skip_iter``.
    """

    def __init__(self, iterator, count, state):
        self.iterator, self.count, self.state = iterator, count, state

    def __iter__(self):
        return self

    def skip_iter(self, count):
        self.iterator.skip_iter(count)
        self.count -= count

    def __next__(self):
        if self.count == 0:
            # its creation draws a number
            getattr(self.iterator, '_ensure_iterator', bool)()
            set_random_state(self.state)
        self.count -= 1
        return next(self.iterator)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """MMEngine's hook, for trainings that may be killed at any moment.

    - A checkpoint is written whole or not at all.
    - An outdated checkpoint, the best one included, is removed after the new one is on
      the disk.
    - A checkpoint has the run that it is of, under ``runs``: an id for each start of
      the training, from the first one to the last. By them ``--resume`` knows the
      checkpoints of another training in the same folder.
    - The state of the random generators of all processes is saved and restored, so
      that a training that goes on computes what it would have computed.
    - Validation leaves the random state as it was: it is not repeated when a training
      goes on.

    Files on other than local file systems, and the folders of DeepSpeed, are written
    as MMEngine does it. A training that goes on with another number of processes, or
    from a checkpoint of another hook, has new random numbers, and the log says so.

    Workers of a data loader have generators of their own, which start anew. Where each
    bit counts, set ``num_workers=0``.

    Args:
        **kwargs: Arguments of MMEngine's CheckpointHook, which takes unknown ones, too.

    Raises:
        TypeError: If an argument is unknown.
    """

    def __init__(self, **kwargs):
        known = inspect.signature(CheckpointHook.__init__).parameters
        for name in kwargs.keys() - known.keys():
            likely = did_you_mean(name, known)
            raise TypeError(f'{type(self).__name__} has no argument {name!r}{likely}')
        super().__init__(**kwargs)
        self._lock_file = None
        self._runs = [uuid4().hex]
        self._saved = None  # random states of all processes, to be saved
        self._loaded = None  # of this process, to be restored
        self._before_val = None

    def before_train(self, runner):
        """Chooses how files are written."""
        super().before_train(runner)
        if self.file_client_args is None and type(self.file_backend) is LocalBackend:
            self.backend_args = dict(backend=BACKEND)
            self.file_backend = WholeFileBackend()
            self.file_backend.outdated.clear()
            if fcntl and is_main_process():
                self._lock(runner)

    def _lock(self, runner):
        """Says if another training writes to the folder; a killed one holds no lock."""
        folder = Path(self.out_dir)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock_file = (folder / '.lock').open('a')
        try:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            runner.logger.warning(
                f'Another training is writing to {folder}: the two replace each '
                "other's checkpoints. Give each a --work-dir of its own"
            )
            return
        except OSError:  # the file system has no locks
            return
        for draft in folder.glob(DRAFTS):  # of a killed one
            draft.unlink()

    def after_train(self, runner):
        """Gives the folder back."""
        super().after_train(runner)
        if self._lock_file is not None:
            self._lock_file.close()

    def after_load_checkpoint(self, runner, checkpoint):
        """Keeps the random state of a checkpoint to go on from."""
        if not runner._resume:
            return
        self._runs = [*checkpoint.get('runs', ()), self._runs[-1]]
        states = checkpoint.get(KEY)
        if states and len(states) == runner.world_size:
            self._loaded = states[get_rank()]
            return
        found = f'{len(states)} processes' if states else 'none'
        runner.logger.warning(
            f'The checkpoint has the random state of {found}, not of '
            f'{runner.world_size}: random numbers are new ones'
        )

    def before_train_epoch(self, runner):
        """Restores the random state."""
        if self._loaded is None:
            return
        loop = runner.train_loop
        if hasattr(loop, 'dataloader_iterator'):
            loop.dataloader_iterator = _ThenRestore(
                loop.dataloader_iterator, loop.iter, self._loaded
            )
        else:
            set_random_state(self._loaded)
        self._loaded = None

    def before_val(self, runner):
        """Remembers the random state."""
        self._before_val = get_random_state()

    def after_val(self, runner):
        """Sets the random state to what it was before the validation."""
        set_random_state(self._before_val)

    def after_val_epoch(self, runner, metrics):
        """Saves the best checkpoint, with the random state before the validation."""
        if self._before_val is not None:
            set_random_state(self._before_val)
        super().after_val_epoch(runner, metrics)

    def before_save_checkpoint(self, runner, checkpoint):
        """Adds the random states and the run to a checkpoint."""
        checkpoint[KEY] = self._saved
        checkpoint['runs'] = self._runs

    def _save_best_checkpoint(self, runner, metrics):
        if self.save_best:
            self._saved = all_gather_object(get_random_state())
        super()._save_best_checkpoint(runner, metrics)

    def _save_checkpoint_with_step(self, runner, step, meta):
        self._saved = all_gather_object(get_random_state())
        super()._save_checkpoint_with_step(runner, step, meta)
