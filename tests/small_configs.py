"""Data and options that make a run of any config of the three libraries short: a few
images of 48 x 48 pixels, one epoch or two iterations."""

import shutil

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


def write_data(folder, make_shapes):
    """Makes the folder ``data`` of the libraries' configs."""
    for layout, path in FOLDERS.items():
        counts = '--num-train', '4', '--num-val', '2', '--size', '48', '48'
        make_shapes.main(['--layout', layout, '--out', str(folder / path), *counts])
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
        elif name == 'init_cfg' and 'checkpoint' in (value or ()):
            yield place, 'None'
        else:
            yield from smaller(value, place)
