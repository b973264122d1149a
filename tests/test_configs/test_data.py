"""Images and classes of every config."""

import re

import pytest

pytestmark = pytest.mark.modern


SHORTER_SIDES = list(range(480, 801, 32))


def test_coco_images(name, config):
    if not name.endswith('_coco'):
        return
    dataset = config(name).train_dataloader.dataset
    schedule = name.split('_')[-2]
    if schedule == 'lsj-100e':
        assert (dataset.type, dataset.times) == ('RepeatDataset', 4)
        dataset = dataset.dataset
    assert dataset.type == 'CocoDataset'
    steps = {step.type: step for step in dataset.pipeline}
    if schedule.startswith('lsj'):
        assert steps['RandomResize'].scale == steps['RandomCrop'].crop_size
        assert steps['RandomResize'].scale == (1024, 1024)
        assert steps['RandomResize'].ratio_range == (0.1, 2.0)
        (padding,) = config(name).model.data_preprocessor.batch_augments
        assert padding.size == (1024, 1024)
    elif schedule == 'ms-crop-3x' or name.startswith('dino'):
        assert steps['RandomFlip'].prob == 0.5
        (whole,), (small, crop, resized) = steps['RandomChoice'].transforms
        assert crop.crop_size == (384, 600)
        assert [min(scale) for scale in small.scales] == [400, 500, 600]
        for step in (whole, resized):
            assert [min(scale) for scale in step.scales] == SHORTER_SIDES
    else:
        assert not [kind for kind in steps if 'Crop' in kind]
        if schedule.endswith('1x'):
            assert steps['Resize'].scale == (1333, 800)
        else:
            scales = steps['RandomChoiceResize'].scales
            assert [max(scale) for scale in scales] == [1333] * 11
            assert [min(scale) for scale in scales] == SHORTER_SIDES
    with_mask = 'mask' in name.partition('_')[0]
    assert steps['LoadAnnotations'].get('with_mask', False) == with_mask


def test_cityscapes_instances(name, config):
    if not name.endswith('_cityscapes'):
        return
    cfg = config(name)
    dataset = cfg.train_dataloader.dataset
    assert (dataset.type, dataset.times) == ('RepeatDataset', 8)
    resize = dataset.dataset.pipeline[2]
    assert resize.scale == [(2048, 800), (2048, 1024)]
    heads = [cfg.model.get('bbox_head'), *cfg.model.get('roi_head', {}).values()]
    classes = {
        head.num_classes
        for head in heads
        if isinstance(head, dict) and 'num_classes' in head
    }
    assert classes == {8}


def test_segmentation_crop(name, config):
    if not name.startswith(('upernet_', 'mask2former_')) or 'coco' in name:
        return
    cfg = config(name)
    side = int(name.rpartition('x')[2])
    assert cfg.model.data_preprocessor.size == (side, side)
    crops = [
        step.crop_size
        for step in cfg.train_dataloader.dataset.pipeline
        if step.type == 'RandomCrop'
    ]
    assert crops == [(side, side)]
    classes = 150 if 'ade20k' in name else 19
    assert cfg.model.decode_head.num_classes == classes
    if name.startswith('upernet_'):
        assert cfg.model.auxiliary_head.num_classes == classes


def test_imagenet_images(name, downstream, config):
    if downstream:
        return
    cfg = config(name)
    side = 384 if name.endswith('-384px') else 224
    sizes = [
        (step.type, step.get('scale') or step.get('crop_size'))
        for loader in (cfg.train_dataloader, cfg.val_dataloader, cfg.test_dataloader)
        for step in loader.dataset.pipeline
        if 'Crop' in step.type
    ]
    assert sizes == [('RandomResizedCrop', side)] + 2 * [('CenterCrop', side)]
    assert cfg.auto_scale_lr.base_batch_size == 8 * cfg.train_dataloader.batch_size
    # CSWin's recipe tests on a crop of 0.9, others on one of 0.875
    by_cswin = re.match('c?swin-[tb]-(?!sharedqk)', name)
    shorter = 384 if side == 384 else 248 if by_cswin else 256
    for loader in (cfg.val_dataloader, cfg.test_dataloader):
        assert loader.dataset.pipeline[1].scale == shorter
