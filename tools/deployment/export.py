"""Export a model to ONNX, TorchScript or torch.export's format.

CONFIG is a config of mmdet, mmseg, mmpretrain or mmlinattn, CHECKPOINT its weights. The
file takes normalized images (B, C, H, W) and gives a classifier's or segmentor's
logits, or a one-stage detector's maps of scores and boxes, before boxes are decoded.
Of other models, only the backbone can be exported (--backbone-only). ONNX files and
TorchScript programs are for batches and images of any size from 32 x 32 on, those of
torch.export for one image of --shape.

With --whole, an ONNX file takes one image (H, W, 3) of any size, RGB in 8 bits, and
gives boxes, scores, labels and masks, a label map, or scores of classes: what
tools/test.py would predict. mmlinattn.deployment.Predictor runs it.
"""

import sys
from pathlib import Path

import torch

from mmlinattn.deployment import (
    FORMATS,
    ExportedModel,
    WholeModel,
    export,
    parity,
    quantize,
)
from mmlinattn.engine.part_errors import quiet
from mmlinattn.models.backbones.base import MIN_SIDE
from mmlinattn.weights import fit, read_checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import (
    Parser,
    add_cfg_options,
    add_overwrite,
    errors_in_one_line,
    number,
    output_file,
    protect,
)
from mmlinattn_tools.looking import dataset_meta, test_dataset
from mmlinattn_tools.runs import load_model

SIDE = number(int, MIN_SIDE, 2**16)
# what a data preprocessor does to images
NOTED = ('mean', 'std', 'bgr_to_rgb', 'to_rgb', 'pad_size_divisor', 'size')


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('config', metavar='CONFIG', help='path of the config')
    parser.add_argument('checkpoint', metavar='CHECKPOINT', help='path of the weights')
    parser.add_argument(
        '--format', choices=FORMATS, default='onnx', help='default: onnx'
    )
    parser.add_argument(
        '--out',
        type=output_file,
        metavar='FILE',
        help="file to write; default: the config's name with the format's ending, "
        'in the current folder',
    )
    parser.add_argument(
        '--shape',
        nargs=2,
        type=SIDE,
        metavar=('H', 'W'),
        default=[224, 224],
        help='size of the image that the exporter runs the model on; default: 224 224',
    )
    parser.add_argument(
        '--verify',
        action='store_true',
        help='compare the outputs of the file and of the model, on a random image that '
        'is 33 and 65 pixels larger than --shape, or of that size for --format export',
    )
    parser.add_argument(
        '--tolerance',
        type=float,
        default=1e-4,
        help='largest difference that --verify allows, relative to the largest '
        'entry of an output; default: 1e-4',
    )
    parser.add_argument(
        '--backbone-only', action='store_true', help='leave neck and heads out'
    )
    parser.add_argument(
        '--whole',
        action='store_true',
        help='from an image to predictions: with the resizing of the test pipeline, '
        'normalization, and what follows the maps (ONNX only)',
    )
    parser.add_argument(
        '--int8',
        action='store_true',
        help='quantize the weights of linear layers (ONNX only); --verify then '
        'reports the error, whatever it is',
    )
    parser.add_argument(
        '--trust',
        action='store_true',
        help='unpickle all that is in CHECKPOINT, which can run any code',
    )
    add_overwrite(parser)
    add_cfg_options(parser, 'model.backbone.num_iters=10')
    args = parser.parse_args(argv)
    if args.int8 and args.format != 'onnx':
        parser.error(f'--int8 needs --format onnx, got {args.format}')
    if args.whole and (args.format != 'onnx' or args.backbone_only or args.verify):
        parser.error(
            '--whole needs --format onnx, and neither --backbone-only nor --verify: '
            'tools/deployment/test_file.py compares such files with their model'
        )
    return args


def verify(model, run, args):
    """Prints the parity at a second size; whether it is within the tolerance."""
    torch.manual_seed(0)
    height, width = args.shape
    if FORMATS[args.format].any_size:
        height, width = height + 33, width + 65
    differences = parity(model, run, torch.randn(1, model.in_channels, height, width))
    print(f'parity at {height} x {width}, relative to the largest entry:')
    for name, difference in differences.items():
        print(f'  {name}: {difference:.1e}')
    return max(differences.values()) <= args.tolerance


def whole_model(cfg, model, preprocessor, meta):
    """A model with all that is before and after it, and what its file says of it."""
    dataset = test_dataset(cfg)
    meta = dataset_meta(dataset, cfg.get('default_scope') or 'mmengine', meta)
    notes = dict(classes=list(meta.get('classes') or ()))
    rcnn = (cfg.model.get('test_cfg') or {}).get('rcnn') or {}
    if 'mask_thr_binary' in rcnn:
        notes['mask_threshold'] = rcnn.mask_thr_binary
    return WholeModel(model, dataset.pipeline, preprocessor), notes


def run(args):
    path = args.out or Path(Path(args.config).stem + FORMATS[args.format].suffix)
    protect(args, path)
    cfg, model = load_model(args)
    checkpoint = read_checkpoint(args.checkpoint, trust=args.trust)
    found = fit(model, checkpoint)
    if not found.whole:
        raise ValueError(
            f'checkpoint={args.checkpoint!r} is of another model: {found.describe()}'
        )
    model.load_state_dict(found.state_dict, strict=False)
    if args.backbone_only:
        model = getattr(model, 'backbone', model)
    preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
    if args.whole:
        meta = (checkpoint.get('meta') or {}).get('dataset_meta') or {}
        model, notes = whole_model(cfg, model, preprocessor or {}, meta)
    else:
        model = ExportedModel(model)
        notes = {key: x for key, x in (preprocessor or {}).items() if key in NOTED}
    path.parent.mkdir(parents=True, exist_ok=True)
    runner = export(model, path, args.format, tuple(args.shape), notes)
    if args.int8:
        quantize(path, path)
        runner = FORMATS['onnx'].open(path)
    print(f'{path}: {path.stat().st_size / 1e6:.1f} MB')
    return not args.verify or verify(model, runner, args) or args.int8


def main(argv=None):
    args = parse_args(argv)
    errors = (ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
    with errors_in_one_line(*errors), quiet():
        is_right = run(args)
    if not is_right:
        sys.exit(
            f'{Path(sys.argv[0]).name}: error: the file differs from the model by more '
            f'than --tolerance {args.tolerance:g}'
        )


if __name__ == '__main__':
    main()
