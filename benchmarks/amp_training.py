"""Train Mask R-CNN with SOFT++-Tiny on a CPU in bfloat16, and check for NaN.

The config is the real one, except for small images of make_shapes, 200 proposals of
the RPN, and 64 of them a step. Each step must have a finite loss and a finite norm of
the gradient, and the final weights must be finite.

example:
  python benchmarks/amp_training.py --steps 500 --out docs/benchmarks/amp_training.json
"""

import json
import math
import platform
import sys
import tempfile
from pathlib import Path

import torch
from common import CONFIGS, TRAIN, make_shapes, parse_report_args, report_parser, run
from side_by_side.report import write_json

CONFIG = CONFIGS / 'mask-rcnn_softpp-t_fpn_1x_coco.py'
CHANGES = """
_base_ = '{config}'
randomness = dict(seed=0)
pretrained = None
model = dict(
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=200, max_per_img=200),
        rcnn=dict(sampler=dict(num=64)),
    )
)
loading = dict(num_workers=0, persistent_workers=False)
train_dataloader = dict(
    batch_size=1, dataset=dict(data_root='{data}/'), **loading
)
val_dataloader = dict(dataset=dict(data_root='{data}/'), **loading)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='{data}/annotations/instances_val2017.json')
test_evaluator = val_evaluator
train_cfg = dict(max_epochs={epochs}, val_interval={epochs})
optim_wrapper = dict(clip_grad=dict(max_norm=1e9))
default_hooks = dict(logger=dict(interval=1), checkpoint=dict(interval={epochs}))
"""


def parse_args(argv=None):
    parser = report_parser(__doc__)
    parser.add_argument('--steps', type=int, default=500, help='a multiple of 20 (500)')
    parser.add_argument('--size', type=int, default=128, help='side of images (128)')
    parser.add_argument(
        '--single', action='store_true', help='train in float32, to compare'
    )
    args = parse_report_args(parser, argv)
    if args.steps < 20 or args.steps % 20:
        parser.error(f'--steps must be a positive multiple of 20, got {args.steps}')
    if args.size < 32:
        parser.error(f'--size must be at least 32, got {args.size}')
    return args


def train(folder, steps, size, amp):
    """Trains in a folder.

    Returns:
        tuple[list[dict], dict]: The log of each step, and the final weights.
    """
    data, config, work = folder / 'coco', folder / 'config.py', folder / 'work'
    make_shapes('coco', data, size, 20, 4)
    config.write_text(CHANGES.format(config=CONFIG, data=data, epochs=steps // 20))
    scales = (
        f'train_dataloader.dataset.pipeline.2.scale=({size},{size})',
        f'val_dataloader.dataset.pipeline.1.scale=({size},{size})',
    )
    options = '--work-dir', work, '--cfg-options', *scales
    run(TRAIN, config, *(['--amp'] if amp else []), *options)
    (log,) = work.rglob('vis_data/scalars.json')
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    checkpoint = (work / 'last_checkpoint').read_text()
    weights = torch.load(checkpoint, map_location='cpu', weights_only=False)
    return [line for line in logged if 'loss' in line], weights['state_dict']


def main(argv=None):
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        logged, weights = train(Path(folder), args.steps, args.size, not args.single)
    keys = [key for key in logged[0] if 'loss' in key or key == 'grad_norm']
    if len(logged) != args.steps or 'grad_norm' not in keys:
        raise RuntimeError(f'{len(logged)} of {args.steps} steps logged {keys}')
    bad = [
        line['step']
        for line in logged
        if not all(math.isfinite(line[key]) for key in keys)
    ]
    broken = [key for key, x in weights.items() if not x.isfinite().all()]
    tenth = args.steps // 10
    means = [
        sum(line['loss'] for line in logged[i : i + tenth]) / tenth
        for i in range(0, args.steps, tenth)
    ]
    report = dict(
        config=CONFIG.name,
        steps=args.steps,
        size=args.size,
        batch=1,
        precision='float32' if args.single else 'bfloat16 autocast',
        steps_not_finite=bad,
        weights_not_finite=broken,
        mean_loss_of_each_tenth=[round(x, 4) for x in means],
        largest_gradient_norm=round(max(line['grad_norm'] for line in logged), 2),
        torch=torch.__version__,
        python=platform.python_version(),
    )
    print(json.dumps(report, indent=1))
    if args.out:
        write_json(args.out, report)
    sys.exit(bool(bad or broken))


if __name__ == '__main__':
    main()
