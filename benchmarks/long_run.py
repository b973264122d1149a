"""Train Mask R-CNN for long, and see whether memory, loss and speed stay as they are.

configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py trains on small images of shapes, all of
one size ('fixed') or of new sizes in every batch ('random'), with quickstart's settings
and without workers of the data loader. Every 20 iterations, the resident memory of the
process is recorded, the largest loss, and the seconds of an iteration. With new sizes,
the C library keeps what was freed for the largest batches so far; it is told to return
that first, and what was resident before is recorded too. The exit code is 1 if a loss
was not finite, or if memory grew by more than 2 % after the first quarter, in which
every part has run once.

The command may be stopped: the next one with the same --work-dir goes on.

examples:
  python benchmarks/long_run.py --out docs/benchmarks/long_run.json
  python benchmarks/long_run.py --sizes fixed --iterations 200 --work-dir short
"""

import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from side_by_side.memory import resident
from side_by_side.report import write_json

from mmlinattn.utils.memory import release_memory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tools'))

from mmlinattn_tools.cli import (
    Parser,
    add_overwrite,
    exit_with,
    output_file,
    output_folder,
    protect,
)

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / 'configs' / 'soft' / 'mask-rcnn_softpp-t_fpn_1x_coco.py'
TRAIN = ROOT / 'tools' / 'train.py'
MAKE_SHAPES = ROOT / 'tools' / 'dataset_converters' / 'make_shapes.py'
QUICKSTART = ROOT / 'tools' / 'misc' / 'quickstart.py'
RECORD = 'long_run.jsonl'
INTERVAL = 20
WARM_UP = 0.25  # of the iterations, the first evaluation's among them
GROWTH = 0.02  # of memory
NUM_TRAIN, NUM_VAL, BATCH = 200, 16, 2
# pixels of a side; a batch of two sizes is padded to the larger ones
SIDE, RANDOM_SIDES = 96, (64, 128)
RESIZE = dict(
    fixed=dict(type='Resize', scale=(SIDE, SIDE), keep_ratio=False),
    random=dict(
        type='RandomResize',
        scale=[(RANDOM_SIDES[0],) * 2, (RANDOM_SIDES[1],) * 2],
        keep_ratio=False,
    ),
)


@HOOKS.register_module()
class LongRunHook(Hook):
    """Records memory, loss and speed of a training, a line of JSON at a time.

    A line has the iteration, the process's resident memory in bytes, the largest loss
    since the line before (None if one is not finite), the median seconds of an
    iteration and of its work on the processor, and whether the process is a new one.
    Lines of iterations that a resumed training repeats are removed.

    Args:
        release (bool): Whether the C library returns what is freed before memory is
            read. 'before_release' is the memory before that.
    """

    priority = 'VERY_LOW'

    def __init__(self, release=False):
        self.release = release

    def before_train(self, runner):
        self.path = Path(runner.work_dir, RECORD)
        done = [line for line in read_record(self.path) if line['iter'] <= runner.iter]
        self.path.write_text(''.join(json.dumps(line) + '\n' for line in done))
        self.is_new = True
        self.losses, self.seconds = [], []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.start = time.perf_counter(), time.process_time()

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        now = time.perf_counter(), time.process_time()
        self.seconds.append([end - start for end, start in zip(now, self.start)])
        self.losses.append(outputs['loss'].item())
        if not self.every_n_train_iters(runner, INTERVAL):
            return
        wall, cpu = (median(values) for values in zip(*self.seconds))
        before = {}
        if self.release:
            before = dict(before_release=resident('VmRSS'))
            release_memory()
        line = dict(
            iter=runner.iter + 1,
            memory=resident('VmRSS'),
            **before,
            loss=max(self.losses) if all(map(math.isfinite, self.losses)) else None,
            seconds=round(wall, 3),
            cpu_seconds=round(cpu, 3),
            new=self.is_new,
        )
        with self.path.open('a') as file:
            print(json.dumps(line), file=file)
        self.is_new = False
        self.losses, self.seconds = [], []


def read_record(path):
    """The lines of a record, [] if there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument(
        '--sizes', nargs='+', choices=RESIZE, default=list(RESIZE), help='default: both'
    )
    parser.add_argument('--iterations', type=int, default=2000, help='of each (2000)')
    parser.add_argument(
        '--work-dir',
        type=output_folder,
        default=Path('work_dirs', 'long_run'),
        help='folder for data and checkpoints (%(default)s)',
    )
    parser.add_argument(
        '--out',
        type=output_file,
        metavar='FILE',
        help='JSON file to write; the curves go to a PNG file beside it',
    )
    parser.add_argument(
        '--report-only',
        action='store_true',
        help='train nothing: report what is recorded so far',
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        protect(args, args.out, args.out.with_suffix('.png'))
    if args.iterations < 10 * INTERVAL:
        parser.error(
            f'--iterations must be at least {10 * INTERVAL}, got {args.iterations}'
        )
    return args


def quickstart_options(data):
    """The settings of quickstart for a data folder, as options of train.py."""
    spec = importlib.util.spec_from_file_location('quickstart', QUICKSTART)
    quickstart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quickstart)
    args = quickstart.parse_args(['--epochs', '1', '--size', str(SIDE)])
    return quickstart.cfg_options(data, args)


def write_config(path, sizes, iterations):
    """Writes a training of so many iterations as a config."""
    checkpoint = dict(by_epoch=False, interval=iterations // 5, max_keep_ckpts=1)
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
        RESIZE[sizes],
        dict(type='RandomFlip', prob=0.5),
        dict(type='PackDetInputs'),
    ]
    loop = dict(
        _delete_=True,
        type='IterBasedTrainLoop',
        max_iters=iterations,
        val_interval=iterations // 5,
    )
    loading = dict(
        batch_size=BATCH,
        persistent_workers=False,
        sampler=dict(_delete_=True, type='InfiniteSampler'),
        dataset=dict(pipeline=pipeline),
    )
    lines = [
        f'_base_ = {str(CONFIG)!r}',
        f'train_cfg = {loop}',
        f'train_dataloader = {loading}',
        'val_dataloader = dict(persistent_workers=False)',
        'test_dataloader = val_dataloader',
        # the padding to multiples of 32 would leave few sizes
        'model = dict(data_preprocessor=dict(pad_size_divisor=1))',
        f'default_hooks = dict(checkpoint={checkpoint})',
        'log_processor = dict(by_epoch=False)',
        "custom_imports = dict(imports=['long_run'])",
        f"custom_hooks = [dict(type='LongRunHook', release={sizes == 'random'})]",
        'randomness = dict(seed=0)',
    ]
    path.write_text('\n'.join(lines) + '\n')


def train(folder, sizes, iterations):
    """Trains, or goes on, until the record is whole.

    Returns:
        list[dict]: The lines of the record.
    """
    work_dir = folder / sizes
    done = read_record(work_dir / RECORD)
    if not done or done[-1]['iter'] < iterations // INTERVAL * INTERVAL:
        data = folder / 'coco'
        numbers = '--num-train', NUM_TRAIN, '--num-val', NUM_VAL, '--size', 128, 128
        run([MAKE_SHAPES, '--layout', 'shapes', '--out', data, *numbers])
        work_dir.mkdir(parents=True, exist_ok=True)
        config = folder / f'{sizes}.py'
        write_config(config, sizes, iterations)
        options = [
            # mask heads dominate: two positive regions of an image
            'model.train_cfg.rcnn.sampler.num=8',
            *(x for x in quickstart_options(data) if not is_changed(x)),
            *(f'{x}_dataloader.num_workers=0' for x in ('train', 'val', 'test')),
        ]
        command = [TRAIN, config, '--work-dir', work_dir, '--cfg-options', *options]
        run([*command, '--resume'])
        done = read_record(work_dir / RECORD)
    return done


def is_changed(option):
    """Whether an option of quickstart is of what the config here has anew."""
    key = option.partition('=')[0]
    return key.startswith(
        ('train_cfg', 'param_scheduler.1', 'default_hooks.checkpoint')
    ) or key.endswith(
        ('num_workers', 'batch_size', 'pipeline.2.scale', 'rcnn.sampler.num')
    )


def run(command):
    """Runs a command with our packages, on the CPU; ends with its exit code if it
    fails."""
    env = dict(os.environ, CUDA_VISIBLE_DEVICES='')
    paths = [str(ROOT), str(ROOT / 'benchmarks'), env.get('PYTHONPATH', '')]
    env['PYTHONPATH'] = os.pathsep.join(filter(None, paths))
    done = subprocess.run([sys.executable, *map(str, command)], env=env)
    if done.returncode:
        sys.exit(done.returncode)


def summarize(record):
    """What became of memory, loss and speed.

    Args:
        record (list[dict]): Lines of :class:`LongRunHook`. The warm-up is their first
            quarter, and that of every process that went on.

    Returns:
        dict: Memory in bytes, as medians of the first and last tenth after the
        warm-up and at its peak; its relative growth from one to the other; seconds of
        an iteration in the same tenths; the number of processes; whether all losses
        are finite.
    """
    warm_up = max(round(WARM_UP * len(record)), 1)
    starts = [i for i, line in enumerate(record) if line['new']]
    warm = [
        line
        for i, line in enumerate(record)
        if not any(start <= i < start + warm_up for start in starts)
    ]
    tenth = max(len(warm) // 10, 1)

    def at(key, lines):
        return median(line[key] for line in lines)

    first, last = warm[:tenth], warm[-tenth:]
    end = at('memory', last)
    return dict(
        processes=len(starts),
        finite=all(line['loss'] is not None for line in record),
        memory_first=at('memory', first),
        memory_last=end,
        memory_peak=max(line['memory'] for line in record),
        growth=end / at('memory', first) - 1,
        **{f'{key}_first': at(key, first) for key in ('seconds', 'cpu_seconds')},
        **{f'{key}_last': at(key, last) for key in ('seconds', 'cpu_seconds')},
    )


def plot(records, path):
    """Curves of memory, speed and loss by iteration, one line for each record."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    panels = {
        'resident memory, MiB': lambda line: line['memory'] / 2**20,
        'seconds of CPU per iteration': lambda line: line['cpu_seconds'],
        'largest loss in 20 iterations': lambda line: line['loss'],
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 3), layout='constrained')
    for axis, (title, value) in zip(axes, panels.items()):
        for name, record in records.items():
            steps = [line['iter'] for line in record]
            axis.plot(steps, list(map(value, record)), label=f'{name} sizes', lw=1)
        axis.set(title=title, xlabel='iteration')
    for name, record in records.items():
        freed = [line for line in record if 'before_release' in line]
        if freed:
            steps = [line['iter'] for line in freed]
            values = [line['before_release'] / 2**20 for line in freed]
            label = f'{name}, with what is free'
            axes[0].plot(steps, values, 'k:', label=label, lw=1)
    for axis in axes:
        axis.set_ylim(0)
    axes[0].legend(loc='lower right')
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(argv=None):
    args = parse_args(argv)
    folder = args.work_dir.absolute()
    if not args.report_only:
        folder.mkdir(parents=True, exist_ok=True)
    records, summaries = {}, {}
    for sizes in args.sizes:
        if args.report_only:
            record = read_record(folder / sizes / RECORD)
        else:
            record = train(folder, sizes, args.iterations)
        if not record:
            continue
        records[sizes] = record
        found = summaries[sizes] = summarize(records[sizes])
        print(
            f'{sizes} sizes, {record[-1]["iter"]} iterations: '
            f'{found["memory_first"] / 2**20:.0f} MiB after the warm-up, '
            f'{found["memory_last"] / 2**20:.0f} MiB at the end '
            f'({found["growth"]:+.1%}), {found["cpu_seconds_first"]:.2f} and '
            f'{found["cpu_seconds_last"]:.2f} s of CPU for an iteration, losses '
            + ('all finite' if found['finite'] else 'NOT ALL FINITE'),
            flush=True,
        )
    if not records:
        exit_with(FileNotFoundError(f'--work-dir {folder}: nothing is recorded there'))
    if args.out:
        report = dict(
            torch=torch.__version__,
            python=platform.python_version(),
            batch=BATCH,
            sides=dict(fixed=SIDE, random=RANDOM_SIDES),
            summaries=summaries,
            **records,
        )
        write_json(args.out, report)
        plot(records, args.out.with_suffix('.png'))
    sys.exit(not all(map(holds, summaries.values())))


def holds(found):
    """Whether a summary keeps the promise."""
    return found['finite'] and found['growth'] <= GROWTH


if __name__ == '__main__':
    main()
