"""Every config's images and classes agree with its model and its name; its batches and
its schedule with its recipe and with the index of models."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from loading import ROOT
from mmengine.registry import DATASETS
from our_configs import ALL_PATHS, METAFILES

pytestmark = pytest.mark.modern_full


def innermost(dataset):
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return dataset


def test_data(in_folder):
    """Heads have as many classes as the data set, training images the side of the name
    and the model."""
    for name, cfg, _ in in_folder:
        with DATASETS.switch_scope_and_registry(cfg.default_scope) as registry:
            dataset = registry.get(innermost(cfg.train_dataloader.dataset).type)
        own = innermost(cfg.train_dataloader.dataset).get('metainfo')
        classes = len((own or dataset.METAINFO)['classes'])
        model = repr(cfg.model.to_dict())
        heads = re.findall(r"'num_(?:things_)?classes': (\d+)", model)
        assert {*heads} == {str(classes)}, name
        if cfg.default_scope == 'mmdet':
            continue
        side = int((re.findall(r'-(\d+)px', name) or [224])[0])
        if cfg.default_scope == 'mmseg':
            side = int(name.rpartition('x')[2])
            assert cfg.model.data_preprocessor.size == (side, side), name
        kinds = ('RandomCrop', 'RandomResizedCrop')
        (crop,) = [x for x in cfg.train_dataloader.dataset.pipeline if x.type in kinds]
        assert (crop.get('scale') or crop.crop_size) in (side, (side, side)), name


def test_small_maps(in_folder):
    """What shifted windows do on small maps is written down, for detectors and
    segmentors as in their codes, for classifiers as in theirs."""
    for name, cfg, _ in in_folder:
        backbone, dense = cfg.model.backbone, cfg.default_scope != 'mmpretrain'
        text = repr(backbone.to_dict())
        without = backbone.get('attention') in ('elfatt', 'efficient', 'global')
        if 'SwinTransformer' in backbone.type.split('.') and not without:
            assert backbone.pad_small_map == dense, name
        said = text.count(f"'pad_small_map': {dense}")
        assert said >= text.count('WindowAttention') - text.count('ShapedWindow'), name
        assert f"'pad_small_map': {not dense}" not in text, name


def test_averaged_buffers(in_folder):
    """Averaged weights are tested with averaged statistics of BatchNorm, as in timm's
    ModelEma, which the authors use; MMEngine's default takes the latest statistics."""
    for name, cfg, _ in in_folder:
        for hook in cfg.get('custom_hooks') or []:
            if hook['type'] == 'EMAHook':
                assert hook.get('update_buffers') is True, name


def test_schedule(in_folder):
    """The GPUs of the recipe load the batch that the learning rate is for; the
    schedule ends with the training, whose length the index has."""
    for name, cfg, entry in in_folder:
        meta = entry['Metadata']
        batch = meta['Batch Size']
        assert cfg.auto_scale_lr.base_batch_size == batch, name
        assert batch / cfg.train_dataloader.batch_size in (1, 4, 8), name  # devices
        assert cfg.optim_wrapper.get('accumulative_counts', 1) == 1, name
        assert cfg.train_cfg.get('max_epochs') == meta.get('Epochs'), name
        assert cfg.train_cfg.get('max_iters') == meta.get('Iterations'), name
        *warmup, decay = cfg.param_scheduler
        total = cfg.train_cfg.get('max_iters') or cfg.train_cfg.max_epochs
        # CSWin's fine-tuning goes on at the smallest learning rate
        assert decay.end == total - 10 * (
            '_finetune_' in name and name.endswith('-384px')
        ), name
        assert all(step < total for step in decay.get('milestones', [])), name
        if decay.type in ('PolyLR', 'CosineAnnealingLR'):
            expected = [(0, decay.begin)] if decay.begin else []
            assert [(step.begin, step.end) for step in warmup] == expected, name
        if 'dynamic_intervals' in cfg.train_cfg:
            assert cfg.train_cfg.dynamic_intervals[-1][1] == total, name
        else:
            assert total % cfg.train_cfg.val_interval == 0, name
        if cfg.default_scope == 'mmseg':  # the best one is always on the disk
            assert (
                cfg.default_hooks.checkpoint.interval == cfg.train_cfg.val_interval
            ), name


def test_start(in_folder):
    """Backbones start from `pretrained`, and from nothing else; recipes of ImageNet
    and Imagenette train from scratch."""
    for name, cfg, _ in in_folder:
        assert cfg.load_from is None and cfg.model.get('pretrained') is None, name
        hook = cfg.default_hooks.pretrained
        assert hook.type == 'mmlinattn.PretrainedBackboneHook', name
        from_scratch = re.search('(?<!_finetune)_(in1k|imagenette)', name) is not None
        assert hook.get('warn', True) == (not from_scratch), name


def test_names_are_unique():
    """mim searches for a config by its name, ours and those of the libraries."""
    names = [path.name for path in ROOT.glob('configs/**/*.py')]
    assert len(names) == len(set(names))
    for library in ('mmdet', 'mmseg', 'mmpretrain'):
        folder = Path(find_spec(library).origin).parent
        theirs = {path.name for path in folder.glob('.mim/configs/**/*.py')}
        assert theirs and not theirs & set(names)


def test_metafiles_list_all_configs():
    listed = [model['Name'] for meta in METAFILES for model in meta['Models']]
    assert sorted(listed) == sorted(ALL_PATHS)
    for meta in METAFILES:
        collections = {collection['Name'] for collection in meta['Collections']}
        for collection in meta['Collections']:
            assert (ROOT / collection['README']).is_file()
            # the last part of an address is a file for mim, and no other one is there
            assert collection['Metadata'].get('Weight', '/.').endswith('/.')
        for model in meta['Models']:
            # mim looks for names in lower case only
            assert model['Name'] == model['Name'].lower()
            assert Path(model['Config']).stem == model['Name']
            assert (ROOT / model['Config']).is_file()
            assert model['In Collection'] in collections


def test_mim_reads_the_index():
    from mim.commands import search

    table = search.convert2df(search.load(str(ROOT / 'model-index.yml')))
    assert sorted(table.index) == sorted(ALL_PATHS)
    row = table.loc['mask-rcnn_softpp-t_fpn_1x_coco']
    assert (row['coco/paper_box_ap'], row['coco/paper_mask_ap']) == (41.2, 38.2)
