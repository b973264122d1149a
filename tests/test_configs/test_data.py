"""Images and classes of every config agree with its model and its name."""

import pytest
from mmengine.registry import DATASETS

pytestmark = pytest.mark.modern


def innermost(dataset):
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return dataset


def values_of(node, keys):
    """All values of keys, anywhere in a config."""
    if isinstance(node, dict):
        yield from (node[key] for key in keys if key in node)
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from values_of(child, keys)


def test_classes(name, config):
    """Heads have as many classes as the data set."""
    cfg = config(name)
    with DATASETS.switch_scope_and_registry(cfg.default_scope) as registry:
        dataset = registry.get(innermost(cfg.train_dataloader.dataset).type)
    classes = len(dataset.METAINFO['classes'])
    assert {*values_of(cfg.model, ('num_classes', 'num_things_classes'))} == {classes}


def test_crops(name, config):
    """Training images have the side of the name and the model."""
    cfg = config(name)
    if cfg.default_scope == 'mmdet':
        return
    side = 384 if '-384px' in name else 224
    if cfg.default_scope == 'mmseg':
        side = int(name.rpartition('x')[2])
        assert cfg.model.data_preprocessor.size == (side, side)
    else:
        assert cfg.auto_scale_lr.base_batch_size == 8 * cfg.train_dataloader.batch_size
    kinds = ('RandomCrop', 'RandomResizedCrop')
    (crop,) = [x for x in cfg.train_dataloader.dataset.pipeline if x.type in kinds]
    assert (crop.get('scale') or crop.crop_size) in (side, (side, side))
