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
from importlib.metadata import distributions
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import (
    Parser,
    claim_folder,
    errors_in_one_line,
    key_value,
    number,
    output_folder,
)

ROOT = Path(__file__).resolve().parents[2]
CONFIG = 'configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py'
# what is worth a line on the screen; the rest is in the log file
SHOWN = ('Epoch(', 'FROM SCRATCH', 'Error', 'Saving checkpoint')
# what it replaces; make_shapes.py replaces the data, in coco/
RESULTS = ('train', 'test', 'predictions')
# with the colors that they are drawn in
CLASSES = dict(circle=(220, 20, 60), square=(0, 114, 240), triangle=(60, 180, 75))


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add = parser.add_argument
    out = ROOT / 'work_dirs' / 'quickstart'
    text = 'folder for data, checkpoints and pictures (default: %(default)s)'
    add('--out', type=output_folder, default=out, help=text)
    count, size = number(int, 1, 10**6), number(int, 64, 2048)
    add('--num-train', type=count, default=200, help='training images (200)')
    add('--num-val', type=count, default=48, help='held-back images (48)')
    add('--epochs', type=count, default=5, help='passes over the images (5)')
    add('--size', type=size, default=128, help='longer image side, pixels (128)')
    text = 'other settings of the config, such as model.backbone.attn_scale=True'
    kind = dict(type=key_value, metavar='KEY=VALUE')
    add('--cfg-options', nargs='+', default=[], help=text, **kind)
    return parser.parse_args(argv)


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


def run(title, *command, log):
    """Runs a command, shows its progress, keeps everything in a log file."""
    command = list(map(str, command))
    print(f'\n== {title}\n$ {" ".join(command)}', flush=True)
    # threads that wait asleep: many times faster where cores are shared
    env = {'OMP_WAIT_POLICY': 'PASSIVE', **os.environ}
    with open(log, 'w') as file:
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process = subprocess.Popen(command, cwd=ROOT, env=env, **pipes)
        for line in process.stdout:
            file.write(line)
            if any(word in line for word in SHOWN):
                print(line.rstrip(), flush=True)
    if process.wait():
        tail = ''.join(log.read_text().splitlines(keepends=True)[-25:])
        sys.exit(f'{tail}\n{title} failed; the whole log is in {log}')
    print(f'-- log in {log}')


def main(argv=None):
    args = parse_args(argv)
    out = args.out.resolve()
    data, train, test = out / 'coco', out / 'train', out / 'test'
    pictures = out / 'predictions'
    with errors_in_one_line(OSError):
        claim_folder(out, 'quickstart.json')
    for name in RESULTS:
        shutil.rmtree(out / name, ignore_errors=True)

    command = [sys.executable, 'tools/dataset_converters/make_shapes.py', '--overwrite']
    command += ['--layout', 'shapes', '--out', data]
    command += ['--num-train', args.num_train, '--num-val', args.num_val]
    run('Data: shapes in the COCO layout', *command, log=out / 'data.log')

    installed = {x.metadata['Name'] for x in distributions()}
    # mim of the modern stack knows only the long name
    package = 'mmdetection' if 'onedl-mmdetection' in installed else 'mmdet'
    options = ['--gpus', '0', '--cfg-options', *cfg_options(data, args)]
    command = [sys.executable, '-m', 'mim', 'train', package, CONFIG]
    command += ['--work-dir', train, *options]
    run('Training', *command, log=out / 'train.log')

    checkpoint = (train / 'last_checkpoint').read_text().strip()
    command = [sys.executable, '-m', 'mim', 'test', package, CONFIG]
    command += ['--checkpoint', checkpoint, '--work-dir', test]
    command += ['--show-dir', 'pictures', *options]
    run('Testing', *command, log=out / 'test.log')

    stamp = max(path for path in test.iterdir() if path.is_dir())
    shutil.copytree(next(stamp.rglob('pictures')), pictures)
    metrics = json.loads((stamp / f'{stamp.name}.json').read_text())
    if 'coco/bbox_mAP' not in metrics:
        sys.exit('Nothing was detected: give more images (--num-train) or --epochs')
    print(f'\n{args.num_val} held-back images\n{"":6}{"AP":>8}{"AP50":>8}{"AP75":>8}')
    for name, key in (('box', 'bbox'), ('mask', 'segm')):
        values = [metrics[f'coco/{key}_mAP{suffix}'] for suffix in ('', '_50', '_75')]
        print(f'{name:6}' + ''.join(f'{value:8.3f}' for value in values))
    print(f'\nCheckpoint:  {checkpoint}\nPredictions: {pictures}')
    print('(truth on the left, prediction on the right)')


if __name__ == '__main__':
    main()
