"""A small run, and data and options that make any run of the three libraries short: a
few images of 48 x 48 pixels, one epoch or two iterations."""

import shutil

from mmlinattn.commands import make_shapes

# a run, and a classifier on the data set in WORLD/imagenet
RUN = """
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1))
param_scheduler = [dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2)]
train_cfg = dict(by_epoch=True, max_epochs=1)
val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    logger=dict(type='LoggerHook'),
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook'),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook'),
)
pretrained = None
load_from = None
resume = False
backbone = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4]),
)
loading = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False)
)
"""
CLASSIFIER = """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=backbone,
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=1000, in_channels=32),
)
data_preprocessor = dict(
    num_classes=1000, mean=[120.0] * 3, std=[60.0] * 3, to_rgb=True
)
pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
dataset = dict(type='ImageNet', data_root='WORLD/imagenet', pipeline=pipeline)
train_dataloader = dict(dataset=dict(dataset, split='train'), **loading)
val_dataloader = dict(dataset=dict(dataset, split='val'), **loading)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy')
test_evaluator = val_evaluator
"""
# parts of detectors with 32 channels
THIN_HEADS = """
thin = dict(in_channels=32, feat_channels=32)
boxes = dict(
    bbox_roi_extractor=dict(out_channels=32),
    bbox_head=dict(in_channels=32, fc_out_channels=32),
)
masks = dict(
    mask_roi_extractor=dict(out_channels=32),
    mask_head=dict(in_channels=32, conv_out_channels=32),
)
"""
FOLDERS = dict(
    coco='coco',
    imagenet='imagenet',
    ade20k='ade/ADEChallengeData2016',
    cityscapes='cityscapes',
)
SMALL = dict(num_workers='0', persistent_workers='False', batch_size='2')
SMALL.update(max_epochs='1', max_iters='2', val_interval='1', times='1')
PARTS = (
    *('model', 'data_preprocessor', 'train_cfg'),
    *('train_dataloader', 'val_dataloader', 'test_dataloader'),
)


def draw_shapes(layout, out, num_train=4, num_val=2, size=48):
    """Writes a small data set."""
    words = f'--num-train {num_train} --num-val {num_val} --size {size} {size}'.split()
    make_shapes.main(['--layout', layout, '--out', str(out), *words])


def write_data(folder):
    """Makes the folder ``data`` of the libraries' configs."""
    for layout, path in FOLDERS.items():
        draw_shapes(layout, folder / path)
    whole = folder / 'coco/annotations/instances_train2017.json'
    (folder / 'coco/semi_anns').mkdir()
    for name in ('10', '10-unlabeled'):
        shutil.copy(whole, folder / f'coco/semi_anns/{whole.stem}.1@{name}.json')


def options_of(cfg):
    """Options that make a config small, by their keys."""
    return dict(smaller({key: cfg[key] for key in PARTS if cfg.get(key) is not None}))


def smaller(node, key=''):
    children = {}
    if isinstance(node, dict):
        children = node
    elif isinstance(node, (list, tuple)):
        children = dict(enumerate(node))
    for name, value in children.items():
        place = f'{key}.{name}'.strip('.')
        pair = isinstance(value, (tuple, list)) and len(value) == 2
        if name == 'scale' and pair and isinstance(value[0], (tuple, list)):
            yield place, '[(64,64),(64,64)]'
        elif name in ('scale', 'crop_size', 'img_scale', 'size') and pair:
            yield place, '(64,64)'
        elif name == 'stride' and pair:
            yield place, '(32,32)'
        elif name in ('scale', 'crop_size') and isinstance(value, int):
            yield place, '32'
        elif name == 'scales':
            yield place, '[(64,64)]' if isinstance(value[0], (tuple, list)) else '[64]'
        elif name in SMALL:
            yield place, SMALL[name]
        elif name == 'init_cfg' and '://' in str(value):
            yield place, 'None'
        else:
            yield from smaller(value, place)
