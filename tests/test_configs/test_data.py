"""Images and classes of every config agree with its model and its name, batches with
its recipe."""

import re

import pytest
from mmengine.registry import DATASETS

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]

# Images in a step, GPUs, and who says so, by how names begin; the first that fits. GPUs
# are those of the recipe where it names a number.
RECIPES = {
    # SOFT++, 4.2 and 4.3; SETR's configs of SOFT's authors on both data sets
    r'upernet_soft.*cityscapes': (16, 8),
    # MMSegmentation
    r'upernet_.*cityscapes': (8, 4),
    # MMDetection
    r'.*_cityscapes': (8, 8),
    # RALA: maskrcnn_l_3x has one image on a GPU
    r'mask-rcnn_ravlt-l_fpn_ms-crop-3x_coco': (8, 8),
    # ViT^3
    r'mask-rcnn_hvittt': (32, 8),
    # SOFT++, VMamba, Swin, MLLA, RALA, and MMDetection's and Mask2Former's own
    r'.*_(coco|ade20k-512x512)': (16, 8),
    # ELFATT as CSWin, which has 256 images on each GPU in T, 128 in B
    r'c?swin-b-.*_finetune_in1k-384px': (256, 8),
    r'c?swin-t-(elfatt|global|local|efficient|agent|flatten).*_in1k': (2048, 8),
    # InLine, PolaFormer, MLLA: 64 on each in B, MLLA's S too
    r'c?swin-b-(inline|polaformer)_in1k|mlla-[sb]_in1k': (512, 8),
    # AttnScale and FeatScale: their rate is for 512 images
    r'cait-.*_finetune_in1k': (512, 8),
    # SOFT, SOFT++, DeiT, CaiT, Swin, MLLA, RALA
    r'.*_in1k': (1024, 8),
}


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


def test_classes(loaded):
    """Heads have as many classes as the data set."""
    for name, cfg, _ in loaded:
        with DATASETS.switch_scope_and_registry(cfg.default_scope) as registry:
            dataset = registry.get(innermost(cfg.train_dataloader.dataset).type)
        classes = {len(dataset.METAINFO['classes'])}
        assert {*values_of(cfg.model, ('num_classes', 'num_things_classes'))} == (
            classes
        ), name


def test_batches(loaded):
    """All GPUs of the recipe load its batch, which the learning rate is for."""
    for name, cfg, _ in loaded:
        batch, gpus = next(x for y, x in RECIPES.items() if re.match(y, name))
        assert cfg.auto_scale_lr.base_batch_size == batch, name
        assert cfg.train_dataloader.batch_size * gpus == batch, name
        assert cfg.optim_wrapper.get('accumulative_counts', 1) == 1, name


def test_crops(loaded):
    """Training images have the side of the name and the model."""
    kinds = ('RandomCrop', 'RandomResizedCrop')
    for name, cfg, _ in loaded:
        if cfg.default_scope == 'mmdet':
            continue
        side = 384 if '-384px' in name else 224
        if cfg.default_scope == 'mmseg':
            side = int(name.rpartition('x')[2])
            assert cfg.model.data_preprocessor.size == (side, side), name
        (crop,) = [x for x in cfg.train_dataloader.dataset.pipeline if x.type in kinds]
        assert (crop.get('scale') or crop.crop_size) in (side, (side, side)), name
