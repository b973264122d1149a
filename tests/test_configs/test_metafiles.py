"""Names of configs, and the index of models."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]

ROOT = Path(__file__).parents[2]
BACKBONE = '[a-z0-9-]+'
PATTERN = re.compile(
    r'(retinanet|(?:cascade-)?mask-rcnn|atss|gfl|sparse-rcnn)_'
    rf'{BACKBONE}_(fpn|sfp)_((?:layer-decay-)?[13]x|ms-crop-3x|lsj-100e)_(coco|cityscapes)'
    rf'|dino-4scale_{BACKBONE}_1x_coco'
    rf'|mask2former_{BACKBONE}_(lsj-50e_coco|1x_ade20k-512x512)'
    rf'|upernet_{BACKBONE}(_lr6e-4)?_(?:layer-decay-)?[13]x_(ade20k-512x512|cityscapes-768x768)'
    rf'|{BACKBONE}_in1k|{BACKBONE}_finetune_in1k(-384px)?'
)


def test_names_are_unique():
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


def test_name(name):
    assert PATTERN.fullmatch(name)


def test_metafile_tells_the_schedule(name, entry, config):
    cfg, meta = config(name), entry['Metadata']
    length = {'Epochs': 'max_epochs', 'Iterations': 'max_iters'}
    told = [key for key in length if key in meta]
    assert len(told) == 1
    assert cfg.train_cfg[length[told[0]]] == meta[told[0]]
    assert cfg.auto_scale_lr.base_batch_size == meta['Batch Size']


def test_mim_reads_the_index(names):
    search = pytest.importorskip('mim.commands.search')
    table = search.convert2df(search.load(str(ROOT / 'model-index.yml')))
    assert sorted(table.index) == sorted(names)
    row = table.loc['mask-rcnn_softpp-t_fpn_1x_coco']
    assert row['coco/paper_box_ap'] == 41.2
    assert row['coco/paper_mask_ap'] == 38.2
    row = table.loc['cait-s24-attnscale_finetune_in1k']
    assert row['imagenet-1k/paper_top_1_accuracy'] == 82.8
    row = table.loc['upernet_cswin-t-elfatt_1x_ade20k-512x512']
    assert row['ade20k/paper_miou'] == 49.6
