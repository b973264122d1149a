"""Train Mask R-CNN for long, and check that memory, loss and speed stay stable.

configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py trains on small images of shapes, all of
one size ('fixed') or of new sizes in every batch ('random'), with quickstart's settings
and without workers of the data loader. Every 20 iterations, it records the resident
memory of the process, the largest loss, and the seconds of an iteration. With new
sizes, the C library keeps memory that was freed for the largest batches so far; it is
told to return it first, and the memory before that is recorded too. The exit code is 1
if a loss was not finite, or if memory grew by more than 2 % after the first quarter, in
which every part has run once.

The command may be stopped: the next one with the same --work-dir continues.

examples:
  python benchmarks/long_run.py --out docs/benchmarks/long_run.json
  python benchmarks/long_run.py --sizes fixed --iterations 200 --work-dir short
"""

import json
import math
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch
from common import (
    CONFIGS,
    TRAIN,
    environment,
    make_shapes,
    parse_report_args,
    report_parser,
)
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from side_by_side.memory import resident
from side_by_side.plot import Panel, plot_lines
from side_by_side.report import FORMATS, add_format, write_json

from mmlinattn.utils.memory import release_memory
from mmlinattn_tools.cli import exit_with, output_folder

CONFIG = CONFIGS / 'mask-rcnn_softpp-t_fpn_1x_coco.py'
RECORD = 'long_run.jsonl'
INTERVAL = 20
WARM_UP = 0.25  # of the iterations, with the first evaluation
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
# Quickstart's settings with other iterations and sizes.
CHANGES = """
_base_ = '{base}'
randomness = dict(seed=0)
log_processor = dict(by_epoch=False)
custom_imports = dict(imports=['long_run'])
custom_hooks = [dict(type='LongRunHook', release={release})]
train_cfg = dict(
    _delete_=True,
    type='IterBasedTrainLoop',
    max_iters={iterations},
    val_interval={part},
)
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval={part}, max_keep_ckpts=1),
    logger=dict(interval=10),
)
optim_wrapper = dict(optimizer=dict(lr=6e-4), clip_grad=dict(max_norm=1.0))
few = dict(nms_pre=200, max_per_img=100)
model = dict(
    # the padding to multiples of 32 would leave few sizes
    data_preprocessor=dict(pad_size_divisor=1),
    roi_head=dict(bbox_head=dict(num_classes=3), mask_head=dict(num_classes=3)),
    # mask heads dominate: two positive regions of an image
    train_cfg=dict(rpn_proposal=few, rcnn=dict(sampler=dict(num=8))),
    test_cfg=dict(rpn=few),
)
data = dict(
    data_root='{data}/', metainfo=dict(classes=('circle', 'square', 'triangle'))
)
loading = dict(num_workers=0, persistent_workers=False)
train_dataloader = dict(
    batch_size={batch},
    sampler=dict(_delete_=True, type='InfiniteSampler'),
    dataset=dict(
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
            {resize},
            dict(type='RandomFlip', prob=0.5),
            dict(type='PackDetInputs'),
        ],
        **data,
    ),
    **loading,
)
val_dataloader = dict(dataset=data, **loading)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='{data}/annotations/instances_val2017.json')
test_evaluator = val_evaluator
"""
# entries of lists, which a config can only replace as a whole
OPTIONS = (
    'param_scheduler.0.end=30',
    f'val_dataloader.dataset.pipeline.1.scale=({SIDE},{SIDE})',
    f'test_dataloader.dataset.pipeline.1.scale=({SIDE},{SIDE})',
)


@HOOKS.register_module()
class LongRunHook(Hook):
    """Records memory, loss and speed of a training in lines of JSON.

    A line has the iteration, the process's resident memory in bytes, the largest loss
    since the previous line (None if one is not finite), the median seconds of an
    iteration and of its work on the processor, and True if the process is new. Lines of
    iterations that a resumed training repeats are removed.

    Args:
        release (bool): Makes the C library return freed memory before memory is read.
            'before_release' is the memory before that.
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
    """The lines of a record; [] without one."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def parse_args(argv=None):
    parser = report_parser(__doc__)
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
        '--report-only',
        action='store_true',
        help='train nothing: report the records so far',
    )
    add_format(parser)
    args = parse_report_args(parser, argv, *(f'.{x}' for x in FORMATS))
    if args.iterations < 10 * INTERVAL:
        parser.error(
            f'--iterations must be at least {10 * INTERVAL}, got {args.iterations}'
        )
    return args


def train(folder, sizes, iterations):
    """Trains or resumes until the record is whole.

    Returns:
        list[dict]: The lines of the record.
    """
    work_dir = folder / sizes
    done = read_record(work_dir / RECORD)
    if not done or done[-1]['iter'] < iterations // INTERVAL * INTERVAL:
        data, config = folder / 'coco', folder / f'{sizes}.py'
        make_shapes('shapes', data, 128, NUM_TRAIN, NUM_VAL)
        work_dir.mkdir(parents=True, exist_ok=True)
        text = CHANGES.format(
            base=CONFIG,
            data=data,
            iterations=iterations,
            part=iterations // 5,
            batch=BATCH,
            resize=RESIZE[sizes],
            release=sizes == 'random',
        )
        config.write_text(text)
        command = [TRAIN, config, '--work-dir', work_dir, '--resume']
        command = [sys.executable, *command, '--cfg-options', *OPTIONS]
        done = subprocess.run(list(map(str, command)), env=environment())
        if done.returncode:
            sys.exit(done.returncode)
        done = read_record(work_dir / RECORD)
    return done


def summarize(record):
    """Summary of memory, loss and speed.

    Args:
        record (list[dict]): Lines of :class:`LongRunHook`. The warm-up is their first
            quarter, and that of every process that resumed.

    Returns:
        dict: Memory in bytes, as medians of the first and last tenth after the
        warm-up and at its peak; its relative growth from one to the other; seconds of
            an iteration in the same tenths; the number of processes; True for finite
            losses.
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
    """Curves of memory, speed and loss by iteration, one for each record."""
    keys = {
        'resident memory, MiB': ('memory', 2**20),
        'seconds of CPU per iteration': ('cpu_seconds', 1),
        'largest loss in 20 iterations': ('loss', 1),
    }
    panels = []
    for title, (key, unit) in keys.items():
        curves = {
            f'{name} sizes': curve(record, key, unit)
            for name, record in records.items()
        }
        panels.append(Panel(title, 'iteration', '', curves, bottom=0))
    for name, record in records.items():
        if any('before_release' in line for line in record):
            with_free = curve(record, 'before_release', 2**20)
            panels[0].curves[f'{name} sizes, with what is free'] = with_free
    plot_lines(panels, path)


def curve(record, key, unit):
    """Iterations and one list of values for :class:`Panel`."""
    lines = [line for line in record if line.get(key) is not None]
    return [line['iter'] for line in lines], [[line[key] / unit for line in lines]]


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
        exit_with(FileNotFoundError(f'--work-dir {folder}: it has no record'))
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
        for ending in args.format:
            plot(records, args.out.with_suffix(f'.{ending}'))
    sys.exit(not all(map(holds, summaries.values())))


def holds(found):
    """True if a summary keeps the promise."""
    return found['finite'] and found['growth'] <= GROWTH


if __name__ == '__main__':
    main()
