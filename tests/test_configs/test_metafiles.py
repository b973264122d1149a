"""Names and lengths of configs, and the index of models."""

from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]

ROOT = Path(__file__).parents[2]


def test_names_are_unique():
    """mim searches for a config by its name, ours and those of the libraries."""
    names = [path.name for path in ROOT.glob('configs/**/*.py')]
    assert len(names) == len(set(names))
    for library in ('mmdet', 'mmseg', 'mmpretrain'):
        folder = Path(find_spec(library).origin).parent
        theirs = {path.name for path in folder.glob('.mim/configs/**/*.py')}
        assert theirs and not theirs & set(names)


def test_metafiles_list_all_configs(names, metafiles):
    listed = [model['Name'] for meta in metafiles for model in meta['Models']]
    assert sorted(listed) == sorted(names)
    for meta in metafiles:
        collections = {collection['Name'] for collection in meta['Collections']}
        for collection in meta['Collections']:
            assert (ROOT / collection['README']).is_file()
        for model in meta['Models']:
            # mim looks for names in lower case only
            assert model['Name'] == model['Name'].lower()
            assert Path(model['Config']).stem == model['Name']
            assert (ROOT / model['Config']).is_file()
            assert model['In Collection'] in collections


def test_schedules(loaded):
    """The metafile tells the schedule, and it ends with the training."""
    for name, cfg, entry in loaded:
        train, meta = cfg.train_cfg, entry['Metadata']
        assert train.get('max_epochs') == meta.get('Epochs'), name
        assert train.get('max_iters') == meta.get('Iterations'), name
        assert cfg.auto_scale_lr.base_batch_size == meta['Batch Size'], name
        *warmup, decay = cfg.param_scheduler
        total = train.get('max_iters') or train.max_epochs
        # CSWin's fine-tuning goes on at the smallest learning rate
        assert decay.end == total - (10 if name.endswith('-384px') else 0), name
        assert all(step < total for step in decay.get('milestones', [])), name
        if decay.type in ('PolyLR', 'CosineAnnealingLR'):
            expected = [(0, decay.begin)] if decay.begin else []
            assert [(step.begin, step.end) for step in warmup] == expected, name
        if 'dynamic_intervals' in train:
            assert train.dynamic_intervals[-1][1] == total, name
        else:
            assert total % train.val_interval == 0, name
        if cfg.default_scope == 'mmseg':  # the best one is always on the disk
            assert cfg.default_hooks.checkpoint.interval == train.val_interval, name


def test_mim_reads_the_index(names):
    search = pytest.importorskip('mim.commands.search')
    table = search.convert2df(search.load(str(ROOT / 'model-index.yml')))
    assert sorted(table.index) == sorted(names)
    row = table.loc['mask-rcnn_softpp-t_fpn_1x_coco']
    assert (row['coco/paper_box_ap'], row['coco/paper_mask_ap']) == (41.2, 38.2)
