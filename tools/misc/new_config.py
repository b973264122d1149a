"""Write a config that trains one of our models on your photos.

    new_config.py --data my/coco --task det --backbone softpp-t --out mine.py

--task  content of the folder --data
det     COCO or labelme files (*.json), VOC or CVAT files (*.xml), or YOLO files (*.txt,
        with names in a *.yaml or classes.txt), or a table of boxes (*.csv); with
        outlines, masks are learned, too
seg     photos, and label maps of the same names in folders with label, mask, annot, seg
        or gt in their names: an id in each pixel, 255 where there is none, or colors;
        or outlines, in a form of det
cls     photos in one folder for each class, or a table (*.csv) of photos and classes

Folders or files that are called train, val or test make the splits, or the lists
train.txt, val.txt and test.txt; without any, every fifth photo is held back. The config
inherits one of ours; its data lists are written to a folder beside it, with its name
and _data. Your own files do not change.
"""

import os
import shlex
import sys
from itertools import chain
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools import cli  # first: a line tells that libraries are missing

# isort: split
import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from mmlinattn_tools import own_formats as formats
from mmlinattn_tools.own_data import ENDING, FORMATS, OwnData

# end of the names of our configs, their number of classes, the default method
BASES = dict(
    det=('_coco', 80, 'retinanet'),
    seg=('_ade20k-512x512', 150, 'upernet'),
    cls=('_in1k', 1000, 'classifier'),
)
# sides of photos: the longest, and the minimum of the short one
SIDES, SHORTEST = dict(det=(1333, 800), seg=(2048, 512), cls=(10**5, 224)), 128
# megapixels in a batch on a CPU and for each GB of a GPU, and the largest batch
BATCHES = dict(det=(0.7, 0.2, 16), seg=(0.7, 0.2, 16), cls=(1.6, 0.5, 128))
# those of OwnData
OPTIONS = ('images', 'labels', 'masks', 'format', 'column', 'resize_masks', 'colors')
ITERATIONS, EPOCHS = 4000, (12, 100)

CONFIG = '''"""{method} with {backbone}; photos: {counts}.

Written by new_config.py; every line is yours to change.
"""

_base_ = {base!r}

# weights of the backbone; None: it trains from scratch
pretrained = {pretrained!r}

classes = {classes!r}
num_classes = len(classes)
model = {model}

# the median photo has {width:g} x {height:g} pixels
scale = {scale}
data_root = {root!r}
lists = {lists!r}  # when photos change, run new_config.py again

{parts}
batch_size = {batch}  # photos on each device, of which there {are}
loader = dict(num_workers={workers}, persistent_workers=True, _delete_=True)
train_dataloader = dict(
    loader,
    batch_size=batch_size,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(data, ann_file=lists + 'train.{ending}', pipeline=train_pipeline),
)
in_order = dict(type='DefaultSampler', shuffle=False)
loader.update(batch_size={test_batch}, sampler=in_order)
data.update(pipeline=test_pipeline, test_mode=True)
val_dataloader = dict(loader, dataset=dict(data, ann_file=lists + 'val.{ending}'))
test_dataloader = dict(loader, dataset=dict(data, ann_file=lists + 'test.{ending}'))

# length and learning rate: a warm-up, then a cosine
batch = batch_size * {devices}
epochs, val_interval = {epochs}, {val_interval}
iterations = max(2, epochs * ({num} // batch))
warmup = min(500, iterations // 10 + 1)
# the rate for {base_batch} photos in a batch, times the root of the batches' ratio
lr = {base_lr:g} * (batch / {base_batch}) ** 0.5{faster}
optimizer = dict(_base_.optim_wrapper.optimizer, lr=lr)
optim_wrapper = dict(_base_.optim_wrapper, clip_grad=dict(max_norm={clip}))
optim_wrapper.update(optimizer=optimizer, _delete_=True)
train_cfg = dict(by_epoch=True, max_epochs=epochs, val_interval=val_interval)
train_cfg.update(_delete_=True)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, end=warmup),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=warmup, end=iterations),
]
auto_scale_lr = dict(enable=False, base_batch_size=batch)

# it keeps the last and the best checkpoint, and pictures in vis_data/vis_image
default_hooks = dict(
    checkpoint=dict(by_epoch=True, interval=1, max_keep_ckpts=1, **best),
    logger=dict(interval=10, log_metric_by_epoch=True),
    visualization=drawing,
    pretrained=dict(warn=True, head=False),
)
custom_hooks = []
log_processor = dict(by_epoch=True, window_size=10)
'''
# for two stages without a GPU, where regions take most of the time
FEWER = """
# fewer regions than the base config's, for training without a GPU: remove this with one
fewer = dict(nms_pre=200, max_per_img=100)
model.update(train_cfg=dict(rpn_proposal=fewer, rcnn=dict(sampler=dict(num=32))))
model.update(test_cfg=dict(rpn=fewer))"""
PARTS = dict(
    det="""load = dict(type='LoadAnnotations', with_bbox=True, with_mask={masks})
resize = dict(type='Resize', scale=scale, keep_ratio=True)
keys = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')
flip, pack = dict(type='RandomFlip', prob=0.5), dict(type='PackDetInputs')
train_pipeline = [dict(type='LoadImageFromFile'), load, resize, flip, pack]
pack = dict(pack, meta_keys=keys)
test_pipeline = [dict(type='LoadImageFromFile'), resize, load, pack]
data = dict(type='CocoDataset', data_root=data_root, data_prefix=dict(img=''))
data.update(metainfo=dict(classes=classes))
val_evaluator = dict(ann_file=lists + 'val.json', classwise=True)
test_evaluator = dict(ann_file=lists + 'test.json', classwise=True)
best = dict(save_best='coco/bbox_mAP', rule='greater')
drawing = dict(draw=True, interval=10, score_thr=0.3)""",
    seg="""crop_size = {crop}  # (H, W), in photos of about this scale
model.update(data_preprocessor=dict(size=crop_size))
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
resize = dict(type='Resize', scale=scale, keep_ratio=True)
train_pipeline = [
    *load,
    dict(type='RandomResize', scale=scale, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [load[0], resize, load[1], dict(type='PackSegInputs')]
data = dict(type='BaseSegDataset', data_root=data_root, img_suffix='')
data.update(data_prefix=dict(img_path='', seg_map_path=lists + 'labels'))
data.update(metainfo=dict(classes=classes))
best = dict(save_best='mIoU', rule='greater')
drawing = dict(draw=True, interval=10)""",
    cls="""data_preprocessor = dict(num_classes=num_classes)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=scale[1], crop_ratio_range=(0.35, 1.0)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=scale[1] * 8 // 7, edge='short'),
    dict(type='CenterCrop', crop_size=scale[1]),
    dict(type='PackInputs'),
]
data = dict(type='CustomDataset', data_root=data_root, classes=classes)
val_evaluator = test_evaluator = [
    dict(type='Accuracy', topk=(1, min(5, num_classes))),
    dict(type='SingleLabelMetric', average=None),  # one value for each class
]
best = dict(save_best='accuracy/top1', rule='greater')
drawing = dict(enable=True, interval=10)""",
)


def parse_args(argv=None):
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('--data', type=Path, required=True, help='folder of photos and annotations')
    add('--task', choices=BASES, required=True, help='objects, areas or whole photos')
    text = 'its name in our configs (default: %(default)s, which has public weights)'
    add('--backbone', default='swin-t-elfatt', help=text)
    text = 'method, its name in our configs (default: chosen by the annotations)'
    add('--detector', metavar='METHOD', help=text)
    add('--out', type=cli.output_file, required=True, help='config to write, NAME.py')
    text = 'classes in the order of labels (default: those in the annotations)'
    add('--classes', nargs='+', metavar='NAME', help=text)
    text = 'ids in label maps that are no label, besides 255'
    add('--ignore', nargs='+', type=int, default=[], metavar='ID', help=text)
    add('--images', metavar='FOLDER', help='where in --data the photos are')
    text = 'where in --data the annotations are, a folder or one file'
    add('--labels', metavar='PATH', help=text)
    add('--masks', metavar='FOLDER', help='where in --data the label maps are')
    text = 'what the labels are (default: whatever is found)'
    add('--format', choices=FORMATS, help=text)
    add('--column', metavar='NAME', help='column of a table that has the class')
    text = 'a picture to write, of 16 photos with their labels'
    add('--show', type=cli.output_file, metavar='NAME.png', help=text)
    text = 'resize label maps of another size than their photos'
    add('--resize-masks', action='store_true', help=text)
    text = 'colors of classes in label maps, in the order of labels'
    add('--colors', nargs='+', metavar='NAME=R,G,B', help=text)
    text = 'passes over the photos (default: depends on their number)'
    add('--epochs', type=cli.number(int, 1, 10**6), help=text)
    text = "weights of the backbone, or 'none' (default: public ones, if any)"
    add('--pretrained', metavar='PATH', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def find_bases(task):
    """Our configs with the shortest schedules, by method and backbone."""
    found = {}
    for path in (ROOT / 'configs').glob(f'*/*{BASES[task][0]}.py'):
        words = ['classifier'] * (task == 'cls') + path.stem.split('_')
        rank = '1x' not in path.stem, len(path.stem), path
        found[tuple(words[:2])] = min(rank, found.get(tuple(words[:2]), rank))
    return {key: path for key, (*_, path) in found.items()}


def heads(node, old, place='_base_.model'):
    """Source of a model's config entries that depend on the classes, or ''."""
    found = {}
    for key, x in node.items():
        where = f'{place}.{key}'
        if key in ('num_classes', 'num_things_classes') and x == old:
            found[key] = 'num_classes'
        elif key == 'class_weight' and isinstance(x, list) and len(x) == old + 1:
            found[key] = f'[*[1.0] * num_classes, {x[-1]}]'
        elif isinstance(x, dict):
            found[key] = heads(x, old, where)
        elif isinstance(x, list) and "'num_classes'" in str(x):
            found[key] = f'[dict(x, num_classes=num_classes) for x in {where}]'
    text = ', '.join(f'{key}={x}' for key, x in found.items() if x)
    return text and f'dict({text})'


def write_config(args, data, lists, devices, memory):
    """The source of a config for devices with this many GB (a CPU: 0)."""
    from mmlinattn.utils import load_config

    task, backbone, bases = args.task, args.backbone, find_bases(args.task)
    method = args.detector or ('mask-rcnn' if data.masks else BASES[task][2])
    if (method, backbone) not in bases:
        near = [f'{x} {y}' for x, y in sorted(bases) if x == method or y == backbone]
        near = near or sorted({x for x, _ in bases})
        text = f'no config has --detector {method} and --backbone {backbone}'
        raise ValueError(f'{text}; there are {", ".join(near)}')
    path = bases[method, backbone]
    base, cfg = f'mmlinattn::{path.parent.name}/{path.name}', load_config(str(path))
    masks = task == 'det' and 'segm' in cfg.val_evaluator.metric
    if masks and not data.masks:
        raise ValueError(f'--detector {method} needs outlines, found only boxes')
    pretrained = args.pretrained or cfg.get('pretrained')
    if not pretrained and task == 'cls':  # take the start of this backbone's detectors
        others = {**find_bases('seg'), **find_bases('det')}
        others = [path for (_, name), path in others.items() if name == backbone]
        pretrained = others and load_config(str(others[-1])).get('pretrained')
    pretrained = None if pretrained in ('none', []) else pretrained
    if not pretrained:
        data.notes.append('the backbone trains from scratch, which takes many photos')
    if not memory:
        data.notes.append('no GPU: training may take hours; --epochs shortens it')
    model = heads(cfg.model, BASES[task][1])

    photos = [photo for split in data.photos.values() for photo in split]
    counts = ', '.join(f'{len(x)} for {split}' for split, x in data.photos.items())
    width, height = (median(x) for x in zip(*(photo['size'] for photo in photos)))
    (long, short), least = SIDES[task], min(width, height)
    zoom = min(long / max(width, height), short / least, max(1, SHORTEST / least))
    h, w = round(height * zoom), round(width * zoom)
    scale, crop = (max(h, w), min(h, w)), (min(h, short), min(w, short))

    on_cpu, on_gpu, most = BATCHES[task]
    room = (memory * on_gpu or on_cpu) * 1e6 / (scale[1] * scale[task == 'cls'])
    num = len(data.photos['train'])
    batch = int(min(room, most if memory else most / 4, num / devices / 8))
    batch = max(batch, 1 if task == 'det' else 2)  # BatchNorm needs two values
    if num < batch * devices:
        raise ValueError(f'{num} photos for training are fewer than a batch of {batch}')
    test_batch, per_epoch = batch if task == 'cls' else 1, num // (batch * devices) or 1
    epochs = args.epochs or min(max(ITERATIONS // per_epoch, EPOCHS[0]), EPOCHS[1])
    val_interval = max(1, epochs // 12)
    base_batch = cfg.auto_scale_lr.base_batch_size
    base_lr = cfg.optim_wrapper.optimizer.lr
    faster = '' if pretrained else ' * 4  # to train from scratch'
    clip = (cfg.optim_wrapper.get('clip_grad') or {}).get('max_norm', 1.0)
    workers = max(1, min(4, (os.cpu_count() or 1) // 2 // devices))
    are = f'are {devices}' if devices > 1 else 'is one'
    ending, classes = ENDING[task], tuple(data.classes)
    root, lists = (f'{x.resolve().as_posix()}/' for x in (args.data, lists))
    parts = PARTS[task].format(**locals())
    stages = (cfg.model.get('train_cfg') or {}).get('rcnn')
    if not memory and isinstance(stages, dict):
        parts += FEWER
        data.notes.append(
            'no GPU: the config takes 32 regions of a photo, not 512, which is faster '
            'and less exact'
        )
    return CONFIG.format(**locals())


def find_devices():
    """The number of GPUs and the GB of the first; (1, 0) for a CPU."""
    import torch

    if not torch.cuda.is_available():
        return 1, 0
    memory = torch.cuda.get_device_properties(0).total_memory
    return torch.cuda.device_count(), memory / 2**30


def tell(data):
    """Prints what was found, and decisions about it."""
    files = sorted((kind, len(x)) for kind, x in data.files.items() if x and kind)
    print('files:', ', '.join(f'{num} {kind}' for kind, num in files))
    header, *rows = data.overview()
    table = Table(*header, box=None)
    for row in rows[:60]:
        table.add_row(*row)
    if rows[60:]:
        table.add_row(f'{len(rows) - 60} more classes')
    Console(highlight=False, markup=False, emoji=False).print(table)
    print(f'{len(data.classes)} classes: {", ".join(data.classes)}')
    for note in data.notes:
        print(f'new_config.py: {note}')


def show(data, path):
    """Draws 16 photos with their labels."""
    from mmlinattn.deployment.predictor import draw, read_image
    from mmlinattn_tools.figures import picture_grid, save

    photos = {x['path']: x for x in chain(*data.photos.values())}
    photos = [*photos.values()]
    figure, axes = picture_grid(4, 4, photos[0]['size'][::-1], 3.0)
    for photo, ax in zip(photos[:: max(1, len(photos) // 16)], axes.flat):
        zoom, found = 300 / max(photo['size']), {}
        pixels = cv2.resize(read_image(photo['path']), None, fx=zoom, fy=zoom)
        size = pixels.shape[1::-1]
        if data.task == 'det':
            objects = [x for x in photo['objects'] if x['name'] in data.classes]
            box = np.reshape([x['bbox'] for x in objects], (-1, 4)) * zoom
            labels = [data.classes.index(x['name']) for x in objects]
            found.update(boxes=np.hstack([box[:, :2], box[:, :2] + box[:, 2:]]))
            found.update(labels=np.array(labels, int), scores=np.ones(len(box)))
            if data.masks:
                masks = [formats.mask_of(x, photo['size']) for x in objects]
                masks = [cv2.resize(x.astype(np.uint8), size) > 0 for x in masks]
                found['masks'] = masks
        elif data.task == 'seg':
            labels = data.table[data.read_ids(photo, resize=True)]
            nearest = cv2.resize(labels, size, interpolation=cv2.INTER_NEAREST)
            found['label_map'] = nearest.astype(int)
        ax.imshow(draw(pixels, found, data.classes) if found else pixels)
        ax.set_title(' '.join([photo['path'].name, *dict.fromkeys(photo['names'])]))
    save(figure, path)


def main(argv=None):
    args = parse_args(argv)
    out, lists = args.out, args.out.with_name(f'{args.out.stem}_data')
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        if not args.data.is_dir():
            raise FileNotFoundError(f'--data {args.data}: there is no such folder')
        if out.suffix != '.py':
            raise ValueError(f'--out {out}: the name of a config must end in .py')
        if args.data.resolve() in out.resolve().parents:
            raise ValueError(f'--out {out} is in the folder --data: give another place')
        cli.protect(args, out, *filter(None, [args.show]))
        options = {name: getattr(args, name) for name in OPTIONS}
        data = OwnData(args.data, args.task, args.classes, args.ignore, **options)
        tell(data)
        told = len(data.notes)
        devices, memory = find_devices()
        text = write_config(args, data, lists, devices, memory)
        cli.claim_folder(lists, 'new_config.json')
        data.write(lists)
        out.write_text(text, 'utf-8')
        if args.show:
            show(data, args.show)
    for note in [*data.notes[told:], text[3:].partition(';')[0]]:
        print(f'new_config.py: {note}')
    tools = shlex.quote(os.path.relpath(ROOT / 'tools'))
    name, python = shlex.quote(str(out)), shlex.quote(sys.executable)
    print('To train it; it ends with the commands to test, predict and export:')
    if devices > 1:
        print(f'bash {tools}/dist_train.sh {name} {devices}')
    else:  # with the Python that has the libraries
        print(f'{python} {tools}/train.py {name}')


if __name__ == '__main__':
    main()
