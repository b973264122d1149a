"""Finished classifiers as the tools take models: configs of mmpretrain, weights."""

import re

import torch
from mmengine import Config, load

from .tasks import MEAN, STD


def export(run, work_dir, out):
    """Writes a config, which is returned, and a checkpoint of a finished classifier,
    such as softpp-bare.py and softpp-bare.pth; photos are cut as in training, classes
    that are ImageNet's have their English names."""
    from timm.data import ImageNetInfo

    info = ImageNetInfo()
    file = work_dir / 'arrays' / run.result(work_dir)['files'] / 'classes.json'
    synonyms = (x.split(',') for x in info.label_descriptions())
    names = {key: name for key, (name, *_) in zip(info.label_names(), synonyms)}
    classes = [names.get(x, x) for x in load(file)]
    weights = torch.load(run.folder(work_dir) / 'weights.pth', weights_only=True)
    num, width = weights['head.weight'].shape
    weights = {key.replace('head.', 'head.fc.'): x for key, x in weights.items()}
    side, backbone = run.recipe['side'], run.backbone
    edge = dict(edge='short', backend='pillow', interpolation='bicubic')
    resize = dict(type='ResizeEdge', scale=side, **edge)
    crop = dict(type='CenterCrop', crop_size=side)
    steps = [dict(type='LoadImageFromFile'), resize, crop, dict(type='PackInputs')]
    data = dict(type='CustomDataset', metainfo=dict(classes=classes), pipeline=steps)
    is_token = backbone.get('out_type') == 'cls_token'
    model = dict(
        type='ImageClassifier',
        data_preprocessor=dict(mean=MEAN, std=STD, to_rgb=True),
        backbone=dict(backbone, type=f'mmlinattn.{backbone["type"]}'),
        neck=None if is_token else dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=num, in_channels=width),
    )
    cfg = dict(default_scope='mmpretrain', model=model)
    cfg.update(test_dataloader=dict(dataset=data))
    words = re.findall(r'\w+', run.name.lower().replace('++', 'pp'))
    path = out / f'{"-".join(words)}.py'
    Config(cfg).dump(path)
    torch.save(dict(state_dict=weights), path.with_suffix('.pth'))
    return path
