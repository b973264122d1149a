"""Trains, tests and draws: a Mask R-CNN with a SOFT++ backbone on real files.

Writes a small dataset of circles, squares and triangles in COCO's layout, trains
configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py on it from scratch with `mim train`,
tests the checkpoint with `mim test`, prints box and mask AP on held-back images and
keeps pictures of the predictions. The options that it prints are what differs from a
real training: data and classes, the size of the images, fewer proposals, a shorter
schedule with a higher learning rate.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, errors_in_one_line, output_folder
from mmlinattn_tools.own_folder import OwnFolder

ROOT = Path(__file__).resolve().parents[2]
CONFIG = 'configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py'
# what is worth a line on the screen; the rest is in the log file
SHOWN = ('Epoch(', 'FROM SCRATCH', 'Error', 'Saving checkpoint')
RECORD = 'quickstart.json'
# what it replaces; make_shapes.py replaces the data, in coco/
RESULTS = ('train', 'test', 'predictions', 'data.log', 'train.log', 'test.log')
MIN_SIZE, MAX_SIZE = 64, 2048
# with the colors that they are drawn in
CLASSES = dict(circle=(220, 20, 60), square=(0, 114, 240), triangle=(60, 180, 75))


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument(
        '--out',
        type=output_folder,
        default=ROOT / 'work_dirs' / 'quickstart',
        help='folder for data, checkpoints and pictures (default: %(default)s)',
    )
    parser.add_argument(
        '--num-train', type=int, default=200, help='training images (200)'
    )
    parser.add_argument('--num-val', type=int, default=48, help='held-back images (48)')
    parser.add_argument(
        '--epochs', type=int, default=5, help='passes over the images (5)'
    )
    parser.add_argument(
        '--size', type=int, default=128, help='longer image side, pixels (128)'
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        default=[],
        metavar='KEY=VALUE',
        help='other settings of the config, such as model.backbone.attn_scale=True',
    )
    args = parser.parse_args(argv)
    for option in args.cfg_options:
        if '=' not in option:
            parser.error(f'--cfg-options takes KEY=VALUE, got {option!r}')
    for name in ('num_train', 'num_val', 'epochs'):
        if getattr(args, name) < 1:
            parser.error(
                f'--{name.replace("_", "-")} must be at least 1, got '
                f'{getattr(args, name)}'
            )
    if not MIN_SIZE <= args.size <= MAX_SIZE:
        parser.error(f'--size must be {MIN_SIZE} to {MAX_SIZE}, got {args.size}')
    missing = [name for name in ('mim', 'mmdet') if find_spec(name) is None]
    if missing:
        parser.error(
            f'{" and ".join(missing)} can not be imported: use the Python of the '
            'environment that `make env` makes'
        )
    return args


def clear(out):
    """Removes the results of an earlier quickstart.

    Args:
        out (Path): The folder of data, checkpoints and pictures.

    Raises:
        FileExistsError: If it has anything that quickstart did not write.
    """
    folder = OwnFolder(out, RECORD)
    record = folder.read()
    if record is None:
        folder.write(dict(results=RESULTS))
    else:
        folder.remove(RESULTS)


def cfg_options(data, args):
    """What differs from the real training, as --cfg-options."""
    options = {
        'train_dataloader.batch_size': 4,
        'train_cfg.max_epochs': args.epochs,
        'train_cfg.val_interval': args.epochs,
        'default_hooks.checkpoint.interval': args.epochs,
        'param_scheduler.0.end': 30,
        'param_scheduler.1.end': args.epochs,
        'param_scheduler.1.milestones': f'[{max(args.epochs - 1, 1)}]',
        'optim_wrapper.optimizer.lr': 6e-4,
        'optim_wrapper.clip_grad.max_norm': 1.0,
        'default_hooks.logger.interval': 10,
        'default_hooks.visualization.score_thr': 0.5,
        'randomness.seed': 0,
        'model.roi_head.bbox_head.num_classes': len(CLASSES),
        'model.roi_head.mask_head.num_classes': len(CLASSES),
        # regions of interest dominate on a CPU: take fewer of them
        'model.train_cfg.rpn_proposal.nms_pre': 200,
        'model.train_cfg.rpn_proposal.max_per_img': 100,
        'model.train_cfg.rcnn.sampler.num': 32,
        'model.test_cfg.rpn.nms_pre': 200,
        'model.test_cfg.rpn.max_per_img': 100,
    }
    scale = f'({args.size},{args.size})'
    annotations = f'{data}/annotations/instances_val2017.json'
    for split, resize in (('train', 2), ('val', 1), ('test', 1)):
        dataset = f'{split}_dataloader.dataset'
        options[f'{split}_dataloader.num_workers'] = 1
        options[f'{dataset}.data_root'] = f'{data}/'
        options[f'{dataset}.pipeline.{resize}.scale'] = scale
        options[f'{dataset}.metainfo.classes'] = f'[{",".join(CLASSES)}]'
        palette = ','.join(map(str, CLASSES.values())).replace(' ', '')
        options[f'{dataset}.metainfo.palette'] = f'[{palette}]'
        if split != 'train':
            options[f'{split}_evaluator.ann_file'] = annotations
    return [f'{key}={value}' for key, value in options.items()] + args.cfg_options


def run(title, command, log):
    """Runs a command, shows its progress, keeps everything in a log file."""
    print(f'\n== {title}\n$ {" ".join(map(str, command))}', flush=True)
    start = time.time()
    # threads that wait asleep: many times faster where cores are shared
    env = {'OMP_WAIT_POLICY': 'PASSIVE', **os.environ}
    with open(log, 'w') as file:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in process.stdout:
            file.write(line)
            if any(word in line for word in SHOWN):
                print(line.rstrip(), flush=True)
    if process.wait():
        tail = ''.join(log.read_text().splitlines(keepends=True)[-25:])
        sys.exit(f'{tail}\n{title} failed; the whole log is in {log}')
    print(f'-- {time.time() - start:.0f} s, log in {log}')


def mim_name():
    """The name of mmdet in mim; onedl's mim knows only the long one."""
    try:
        distribution('onedl-mmdetection')
    except PackageNotFoundError:
        return 'mmdet'
    return 'mmdetection'


def main(argv=None):
    args = parse_args(argv)
    out = args.out.resolve()
    data, train, test = out / 'coco', out / 'train', out / 'test'
    pictures = out / 'predictions'
    with errors_in_one_line(OSError):
        clear(out)
    mim = [sys.executable, '-m', 'mim']
    options = cfg_options(data, args)

    run(
        'Data: shapes in the COCO layout',
        [
            sys.executable,
            'tools/dataset_converters/make_shapes.py',
            '--layout',
            'shapes',
            '--out',
            data,
            '--num-train',
            args.num_train,
            '--num-val',
            args.num_val,
            '--overwrite',
        ],
        out / 'data.log',
    )
    run(
        'Training',
        [
            *mim,
            'train',
            mim_name(),
            CONFIG,
            '--gpus',
            '0',
            '--work-dir',
            train,
            '--cfg-options',
            *options,
        ],
        out / 'train.log',
    )
    checkpoint = (train / 'last_checkpoint').read_text().strip()
    run(
        'Testing',
        [
            *mim,
            'test',
            mim_name(),
            CONFIG,
            '--checkpoint',
            checkpoint,
            '--gpus',
            '0',
            '--work-dir',
            test,
            '--show-dir',
            'pictures',
            '--cfg-options',
            *options,
        ],
        out / 'test.log',
    )

    stamp = max(path for path in test.iterdir() if path.is_dir())
    shutil.copytree(next(stamp.rglob('pictures')), pictures)
    metrics = json.loads((stamp / f'{stamp.name}.json').read_text())
    if 'coco/bbox_mAP' not in metrics:
        sys.exit(
            'Nothing was detected: train on more images or longer '
            '(--num-train, --epochs)'
        )
    print(f'\n{args.num_val} held-back images\n{"":6}{"AP":>8}{"AP50":>8}{"AP75":>8}')
    for name, key in (('box', 'bbox'), ('mask', 'segm')):
        values = [metrics[f'coco/{key}_mAP{suffix}'] for suffix in ('', '_50', '_75')]
        print(f'{name:6}' + ''.join(f'{value:8.3f}' for value in values))
    print(
        f'\nCheckpoint:  {checkpoint}'
        f'\nPredictions: {pictures} (truth on the left, prediction on the '
        'right)'
    )


if __name__ == '__main__':
    main()
