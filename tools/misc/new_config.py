"""Write a config that trains one of our models on your photos.

    new_config.py --data my/coco --task det --backbone softpp-t --out mine.py

--task  what is in the folder --data
det     COCO files (*.json), or VOC files (*.xml); with outlines for masks
seg     photos, and in other folders label maps of the same names, an id in each pixel
cls     photos in one folder for each class

Folders or files may be called train, val and test, and lists of names train.txt, val.txt
and test.txt; where there is no validation set, every fifth photo makes one. The config
inherits ours, and says in comments what it was made from. Lists of photos and labels are
written beside it, in a folder of its name and '_data'; your own files stay as they are.
"""

import math
import os
import shutil
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools.cli import (
    INPUT_ERRORS,
    Parser,
    add_overwrite,
    errors_in_one_line,
    number,
    output_file,
    protect,
)
from mmlinattn_tools.own_data import read_data

# how the names of configs end whose model is taken, and methods that are the default
ENDS = dict(det='_coco', seg='_ade20k-512x512', cls='_in1k')
METHODS = dict(det='retinanet', seg='upernet', cls='classifier')
SHORT = dict(det=800, seg=512, cls=224)  # the longest that a photo's short side gets
SHORTEST, LONG = 128, 1333
ITERATIONS, EPOCHS = 4000, (12, 100)  # a run's length
# megapixels in a batch: on a CPU, and for each GB of a GPU
ON_CPU, ON_GPU = dict(det=0.6, seg=0.6, cls=1.6), dict(det=0.2, seg=0.2, cls=0.5)
BATCH = dict(det=16, seg=16, cls=128)

CONFIG = '''"""{title}

Written by new_config.py, and yours to change.
"""

_base_ = {base!r}

# what the backbone starts from; None: it learns from scratch
pretrained = {pretrained!r}

classes = {classes!r}
num_classes = len(classes)
model = {model}

# {seen} photos, of {width} x {height} pixels in the middle
scale = {scale}
{pipelines}
lists = {lists!r}
dataset = {dataset}
batch_size = {batch}  # on each device, of which there {devices}
workers = dict(num_workers={workers}, persistent_workers=True)
train_dataloader = dict(
    _delete_=True,
    batch_size=batch_size,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(dataset, ann_file=lists + 'train{ending}', pipeline=train_pipeline),
    **workers,
)
val_dataloader = dict(
    _delete_=True,
    batch_size={test_batch},
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        dataset,
        ann_file=lists + 'val{ending}',
        pipeline=test_pipeline,
        test_mode=True,
    ),
    **workers,
)
test_dataloader = dict(
    val_dataloader,
    dataset=dict(val_dataloader['dataset'], ann_file=lists + 'test{ending}'),
)
{evaluators}

epochs = {epochs}
iterations = epochs * {per_epoch}  # {num} photos in batches
warmup = min(500, iterations // 10)
val_interval = {interval}  # epochs
train_cfg = dict(
    _delete_=True, by_epoch=True, max_epochs=epochs, val_interval=val_interval
)
# the {base_lr:g} of a batch of {base_batch}, times the root of this batch's share of it
optim_wrapper = dict(optimizer=dict(lr={lr:.2g}){clip})
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=warmup),
    dict(
        type='CosineAnnealingLR',
        by_epoch=False,
        begin=warmup,
        end=iterations,
        T_max=iterations - warmup,
        eta_min_ratio=0.01,
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size={total_batch})

default_hooks = dict(
    checkpoint=dict(
        by_epoch=True,
        interval=val_interval,
        max_keep_ckpts=1,
        save_best={metric!r},
        rule='greater',
    ),
    logger=dict(interval=10, log_metric_by_epoch=True),
    visualization=dict({drawing}),  # pictures in vis_data/vis_image
    pretrained=dict(head=False, warn=True),
)
custom_hooks = []
log_processor = dict(by_epoch=True, window_size=10)
'''
DETECTION = dict(
    pipelines='''train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask={masks}),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='LoadAnnotations', with_bbox=True, with_mask={masks}),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
''',
    dataset='''dict(
    type='CocoDataset',
    data_root={data!r},
    data_prefix=dict(img=''),
    metainfo=dict(classes=classes),
    filter_cfg=dict(filter_empty_gt=True),
)''',
    evaluators="""val_evaluator = dict(
    _delete_=True, type='CocoMetric', ann_file=lists + 'val.json', metric={metrics}
)
test_evaluator = dict(val_evaluator, ann_file=lists + 'test.json')""",
    drawing='draw=True, interval=10, score_thr=0.3',
    ending='.json',
)
SEGMENTATION = dict(
    pipelines="""crop_size = ({crop[1]}, {crop[0]})
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=scale, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
""",
    dataset='''dict(
    type='BaseSegDataset',
    data_root={data!r},
    data_prefix=dict(img_path='', seg_map_path=lists + 'labels'),
    img_suffix='',
    metainfo=dict(classes=classes),
)''',
    evaluators="""val_evaluator = dict(_delete_=True, type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator""",
    drawing='draw=True, interval=10',
    ending='.txt',
)
CLASSIFICATION = dict(
    pipelines="""data_preprocessor = dict(num_classes=num_classes)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=scale[1], crop_ratio_range=(0.35, 1.0)),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=scale[1] * 8 // 7, edge='short'),
    dict(type='CenterCrop', crop_size=scale[1]),
    dict(type='PackInputs'),
]
""",
    dataset='''dict(
    type='CustomDataset', data_root={data!r}, data_prefix='', classes=classes
)''',
    evaluators="""val_evaluator = dict(
    _delete_=True, type='Accuracy', topk=(1, min(5, num_classes))
)
test_evaluator = val_evaluator""",
    drawing='enable=True, interval=10',
    ending='.txt',
)
PARTS = dict(det=DETECTION, seg=SEGMENTATION, cls=CLASSIFICATION)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--data', type=Path, required=True, help='folder of photos and annotations')
    add('--task', choices=PARTS, required=True, help='objects, areas, or whole photos')
    text = 'as configs are named (default: %(default)s, which has public weights)'
    add('--backbone', default='swin-t-elfatt', help=text)
    text = 'retinanet, mask-rcnn, upernet or another method (default: by the annotations)'
    add('--detector', help=text)
    add('--out', type=output_file, required=True, help='the config to write, *.py')
    text = 'names in the order of labels (default: those in the annotations)'
    add('--classes', nargs='+', metavar='NAME', help=text)
    text = 'ids in label maps of what has no label, besides 255'
    add('--ignore', nargs='+', type=number(int, 0, 65535), default=[], help=text)
    text = 'passes over the photos (default: by their number)'
    add('--epochs', type=number(int, 1, 10**6), help=text)
    text = "weights for the backbone, or 'none' (default: public ones, if there are any)"
    add('--pretrained', help=text)
    add_overwrite(parser)
    return parser.parse_args(argv)


def find_bases(task):
    """Our configs by method and backbone, the shortest schedule of each."""
    bases = {}
    for path in (ROOT / 'configs').glob(f'*/*{ENDS[task]}.py'):
        words = path.stem.split('_')
        key = ('classifier', words[0]) if task == 'cls' else (words[0], words[1])
        bases.setdefault(key, []).append(path)
    return {
        key: min(paths, key=lambda x: ('1x' not in x.stem, len(x.stem)))
        for key, paths in bases.items()
    }


def choose_base(args, masks):
    """The config to inherit."""
    bases = find_bases(args.task)
    methods = sorted({method for method, _ in bases})
    method = args.detector or ('mask-rcnn' if masks else METHODS[args.task])
    if method not in methods:
        raise ValueError(f'--detector {method}: for {args.task}, {", ".join(methods)}')
    backbones = sorted(backbone for x, backbone in bases if x == method)
    if args.backbone not in backbones:
        raise ValueError(f'--backbone {args.backbone}: {method} has {backbones}')
    return bases[method, args.backbone]


def public_weights(args, cfg):
    """What the backbone of a config starts from."""
    from mmlinattn.utils import load_config

    if args.pretrained:
        return None if args.pretrained == 'none' else args.pretrained
    if args.task == 'cls':  # it trains from scratch, others with its backbone do not
        for task in ('det', 'seg'):
            for (_, backbone), path in find_bases(task).items():
                if backbone == args.backbone:
                    return load_config(str(path)).get('pretrained')
    return cfg.get('pretrained')


def heads(node, old, place='_base_.model'):
    """Source of what other classes change in the config of a model, or None."""
    if isinstance(node, (list, tuple)):
        if any(isinstance(x, dict) and 'num_classes' in x for x in node):
            return f'[dict(x, num_classes=num_classes) for x in {place}]'
        return None
    found = {}
    for key, value in node.items():
        if key in ('num_classes', 'num_things_classes') and value == old:
            found[key] = 'num_classes'
        elif key == 'class_weight' and isinstance(value, list) and len(value) == old + 1:
            found[key] = f'[1.0] * num_classes + [{value[-1]}]'
        elif isinstance(value, (dict, list, tuple)):
            found[key] = heads(value, old, f'{place}.{key}')
    return call({key: text for key, text in found.items() if text})


def call(items):
    """Source of a dict, or None for an empty one."""
    text = ', '.join(f'{key}={text}' for key, text in items.items())
    return text and f'dict({text})'


def devices():
    """The number of GPUs, or 1, and the GB of one, or 0."""
    import torch

    if not torch.cuda.is_available():
        return 1, 0
    memory = torch.cuda.get_device_properties(0).total_memory
    return torch.cuda.device_count(), memory / 2**30


def write_config(args, found, lists):
    """The source of the config, and remarks."""
    from mmlinattn.utils import load_config

    task, num = args.task, len(found.photos['train'])
    path = choose_base(args, found.masks)
    cfg = load_config(str(path))
    evaluator = cfg.val_evaluator
    metrics = evaluator.get('metric', 'bbox') if isinstance(evaluator, dict) else 'bbox'
    masks = task == 'det' and 'segm' in metrics
    if masks and not found.masks:
        raise ValueError(
            f'--detector {args.detector} learns masks, and the annotations have boxes '
            'alone: --detector retinanet'
        )
    old = dict(det=80, seg=150, cls=1000)[task]
    model = heads(cfg.model, old)
    every = [x.size for photos in found.photos.values() for x in photos]
    width, height = (round(median(sides)) for sides in zip(*every))
    shrink = min(width, height) / min(SHORT[task], max(SHORTEST, min(width, height)))
    if task == 'det':
        shrink = max(shrink, max(width, height) / LONG)
    scale = sorted((round(width / shrink), round(height / shrink)), reverse=True)
    crop = [min(SHORT[task], round(side / shrink)) for side in (width, height)]
    if task == 'seg':
        model = model[:-1] + f', data_preprocessor=dict(size=({crop[1]}, {crop[0]})))'

    num_devices, memory = devices()
    area = (scale[1] ** 2 if task == 'cls' else scale[0] * scale[1]) / 1e6
    room = memory * ON_GPU[task] if memory else ON_CPU[task]
    most = min(BATCH[task] if memory else BATCH[task] // 4, num // num_devices // 8)
    batch = max(1 if task == 'det' else 2, min(most, int(room / area)))
    per_epoch = math.ceil(num / batch / num_devices)
    epochs = args.epochs or min(max(ITERATIONS // per_epoch, EPOCHS[0]), EPOCHS[1])
    base_lr = cfg.optim_wrapper.optimizer.lr
    base_batch = cfg.auto_scale_lr.base_batch_size
    lr = base_lr * math.sqrt(batch * num_devices / base_batch)
    values = dict(
        title=f'{path.stem.partition("_")[0]} ... ',
        base=f'mmlinattn::{path.parent.name}/{path.name}',
        pretrained=public_weights(args, cfg),
        classes=found.classes,
        model=model,
        seen=len(every),
        width=width,
        height=height,
        scale=tuple(scale),
        crop=crop,
        data=f'{args.data.resolve().as_posix()}/',
        lists=f'{lists.resolve().as_posix()}/',
        batch=batch,
        test_batch=batch if task == 'cls' else 1,
        devices='is one' if num_devices == 1 else f'are {num_devices}',
        workers=max(1, min(4, (os.cpu_count() or 1) // num_devices // 2)),
        epochs=epochs,
        per_epoch=per_epoch,
        num=num,
        interval=max(1, epochs // 12),
        base_lr=base_lr,
        base_batch=base_batch,
        lr=lr,
        total_batch=batch * num_devices,
        clip='' if cfg.optim_wrapper.get('clip_grad') else ', clip_grad=dict(max_norm=1.0)',
        masks=masks,
        metrics=metrics if isinstance(metrics, list) else [metrics],
        metric=dict(det='coco/bbox_mAP', seg='mIoU', cls='accuracy/top1')[task],
    )
    parts = {key: text.format(**values) for key, text in PARTS[task].items()}
    return CONFIG.format(**{**values, **parts})


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(*INPUT_ERRORS):
        if args.out.suffix != '.py':
            raise ValueError(f'--out {args.out} must end in .py')
        lists = args.out.with_name(f'{args.out.stem}_data')
        protect(args, args.out, lists)
        found = read_data(args.data, args.task, args.classes, args.ignore, lists)
        args.out.write_text(write_config(args, found, lists), 'utf-8')
    for note in found.notes:
        print(f'{parser_name()}: {note}')


if __name__ == '__main__':
    main()
