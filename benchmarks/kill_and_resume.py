"""Kill trainings at random moments, resume them, and compare the final weights.

For each task, a small training of one of the configs runs undisturbed. Others with the
same seed are killed with SIGKILL: in an iteration, while a checkpoint is written, or
between epochs. `train.py --resume` finishes each of them. Its final weights must equal
those of the undisturbed training bit for bit, on a CPU.

example:
  python benchmarks/kill_and_resume.py --runs 20 --out docs/benchmarks/killed.json
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parent))  # tests load this file by its path

from common import (
    CONFIGS,
    TRAIN,
    environment,
    make_shapes,
    parse_report_args,
    report_parser,
)
from side_by_side.report import write_json

SIDE = 64
ARCH = dict(
    _delete_=True,
    embed_dims=[8, 16, 24, 32],
    depths=[1, 1, 1, 1],
    num_heads=[1, 2, 3, 4],
)
MOMENTS = ('iteration', 'writing', 'between epochs')

COMMON = """
randomness = dict(seed=0)
env_cfg = dict(cudnn_benchmark=False)
loading = dict(num_workers=0, persistent_workers=False)
model = dict(backbone=dict(arch={arch}))
val_dataloader = dict(dataset=dict(data_root='{data}/'), **loading)
test_dataloader = val_dataloader
default_hooks = dict(logger=dict(interval=1))
"""
# task: layout of the data, config, smaller settings
TASKS = {
    'classifier': (
        'imagenet',
        'softpp-t_in1k.py',
        """
model['head'] = dict(in_channels=32)
train_dataloader = dict(batch_size=4, dataset=dict(data_root='{data}'), **loading)
train_cfg = dict(max_epochs=4, val_interval=1)
""",
    ),
    'detector': (
        'coco',
        'retinanet_softpp-t_fpn_1x_coco.py',
        """
model['neck'] = dict(in_channels=[16, 24, 32])
train_dataloader = dict(batch_size=2, dataset=dict(data_root='{data}/'), **loading)
train_cfg = dict(max_epochs=4, val_interval=1)
val_evaluator = dict(ann_file='{data}/annotations/instances_val2017.json')
test_evaluator = val_evaluator
""",
    ),
    'segmentor': (
        'ade20k',
        'upernet_softpp-t_1x_ade20k-512x512.py',
        """
model['data_preprocessor'] = dict(size=(64, 64))
model['decode_head'] = dict(in_channels=[8, 16, 24, 32], channels=16)
model['auxiliary_head'] = dict(in_channels=24, channels=16)
train_dataloader = dict(batch_size=2, dataset=dict(data_root='{data}'), **loading)
train_cfg = dict(max_iters=12, val_interval=3)
default_hooks['checkpoint'] = dict(interval=3)
""",
    ),
}
# entries of pipelines, which a config can only replace as a whole
OPTIONS = {
    'classifier': {},
    'detector': {
        'train_dataloader.dataset.pipeline.2.scale': f'({SIDE},{SIDE})',
        'val_dataloader.dataset.pipeline.1.scale': f'({SIDE},{SIDE})',
    },
    'segmentor': {
        'train_dataloader.dataset.pipeline.2.scale': f'({2 * SIDE},{SIDE})',
        'train_dataloader.dataset.pipeline.3.crop_size': f'({SIDE},{SIDE})',
        'val_dataloader.dataset.pipeline.1.scale': f'({2 * SIDE},{SIDE})',
    },
}


def parse_args(argv=None):
    parser = report_parser(__doc__)
    parser.add_argument('--runs', type=int, default=20, help='killed trainings (20)')
    parser.add_argument('--seed', type=int, default=0, help='seed of the moments (0)')
    parser.add_argument(
        '--tasks', nargs='+', choices=TASKS, default=list(TASKS), help='default: all'
    )
    args = parse_report_args(parser, argv)
    if args.runs < 1:
        parser.error(f'--runs must be at least 1, got {args.runs}')
    return args


class Trainings:
    """Trainings of one task, in one folder.

    Args:
        task (str): A key of TASKS.
        folder (Path): Folder for data, configs and results.
    """

    def __init__(self, task, folder):
        layout, config, changes = TASKS[task]
        self.folder = folder / task
        self.folder.mkdir(parents=True)
        data = self.folder / layout
        make_shapes(layout, data, SIDE, 8, 4)
        self.config = self.folder / 'config.py'
        text = (COMMON + changes).replace('{data}', str(data))
        self.config.write_text(
            f"_base_ = '{CONFIGS / config}'\n" + text.replace('{arch}', repr(ARCH))
        )
        self.options = [f'{key}={value}' for key, value in OPTIONS[task].items()]

    def start(self, name, *args):
        """Starts a training, its output as a stream of lines."""
        command = [sys.executable, '-u', TRAIN, self.config, *args]
        command += ['--work-dir', self.folder / name]
        if self.options:
            command += ['--cfg-options', *self.options]
        return subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=environment(OMP_NUM_THREADS='1'),  # reproducible
            start_new_session=True,
        )

    def finish(self, name, *args):
        """Runs a training to its end.

        Returns:
            tuple[dict, str]: The last checkpoint, and the output.
        """
        process = self.start(name, *args)
        output = process.communicate()[0]
        if process.returncode:
            raise RuntimeError(f'{name} failed:\n{output[-3000:]}')
        last = (self.folder / name / 'last_checkpoint').read_text()
        return torch.load(last, map_location='cpu', weights_only=False), output

    def kill(self, name, moment, rng, *args):
        """Starts a training and kills it at a moment.

        Args:
            name (str): Name of its folder.
            moment (str): One of MOMENTS.
            rng (random.Random): Draws one of these moments.
            *args: Arguments of the training.

        Returns:
            str | None: The moment at which it was killed, or None if it had finished.
        """
        process = self.start(name, *args)
        count, delay = rng.randint(1, 4), rng.uniform(0, 0.3)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        work_dir = self.folder / name
        try:
            if moment == 'writing':
                wait_for_draft(work_dir, count, process)
            else:
                sign = 'Saving checkpoint' if moment == MOMENTS[2] else ' loss: '
                while process.poll() is None and str(lines).count(sign) < count:
                    time.sleep(0.002)
                time.sleep(delay)
        finally:
            finished = process.poll() is not None
            if not finished:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            reader.join()
        if process.returncode > 0:
            raise RuntimeError(f'{name} failed:\n{"".join(lines)[-3000:]}')
        if finished:
            return None
        drafts = list(work_dir.glob('.*.part'))
        return 'writing' if drafts else moment if moment != 'writing' else MOMENTS[2]


def wait_for_draft(folder, count, process):
    """Waits until the draft of a checkpoint exists for the n-th time."""
    was_there = False
    while process.poll() is None:
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            names = []
        is_there = any(name.endswith('.part') and '.pth.' in name for name in names)
        count -= is_there and not was_there
        if is_there and count <= 0:
            return
        was_there = is_there


def differences(one, other):
    """Names of the entries of two checkpoints' weights that differ in any bit."""
    one, other = one['state_dict'], other['state_dict']
    if one.keys() != other.keys():
        return sorted(one.keys() ^ other.keys())
    return [key for key in one if not torch.equal(one[key], other[key])]


def kill_and_resume(trainings, name, moment, rng, undisturbed):
    """Kills a training once or twice, resumes it, and compares it.

    Returns:
        dict: Record of the kills and the comparison.
    """
    moments, args = [], ()
    for _ in range(rng.randint(1, 2)):
        killed = trainings.kill(name, moment, rng, *args)
        args = ('--resume',)
        if killed is None:
            break
        moments.append(killed)
        moment = rng.choice(MOMENTS)
    final, output = trainings.finish(name, '--resume')
    skipped = [line for line in output.splitlines() if '--resume skips' in line]
    return dict(
        killed=moments, skipped=len(skipped), different=differences(undisturbed, final)
    )


def main(argv=None):
    args = parse_args(argv)
    rng = random.Random(args.seed)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        trainings, undisturbed = {}, {}
        for task in args.tasks:
            trainings[task] = Trainings(task, Path(folder))
            undisturbed[task], _ = trainings[task].finish('undisturbed')
        for i in range(args.runs):
            task = args.tasks[i % len(args.tasks)]
            moment = MOMENTS[i // len(args.tasks) % len(MOMENTS)]
            run = kill_and_resume(
                trainings[task], f'run{i}', moment, rng, undisturbed[task]
            )
            runs.append(dict(task=task, **run))
            state = 'DIFFERS' if run['different'] else 'equal'
            print(f'{i + 1}: {task}, {", ".join(run["killed"])}: {state}', flush=True)
    equal = sum(not run['different'] for run in runs)
    kills = Counter(moment for run in runs for moment in run['killed'])
    print(f'{equal} of {len(runs)} equal; kills: {dict(kills)}')
    if args.out:
        write_json(args.out, dict(runs=runs, kills=kills, torch=torch.__version__))
    sys.exit(equal < len(runs))


if __name__ == '__main__':
    main()
