"""What a config must know of its photos: the most objects in one, and the smallest."""

import json
from pathlib import Path

import pytest
from PIL import Image

from mmlinattn.commands import new_config as tool
from mmlinattn.own_config import Devices
from mmlinattn.own_config.photo_limits import ObjectLimits, check_sizes, needs_padding
from mmlinattn.own_config.sizes import reduced_notes
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab


@pytest.mark.parametrize(
    'most, detections, score',
    [
        (0, 100, 'bbox_mAP'),
        (66, 100, 'bbox_mAP'),
        (67, 200, 'bbox_mAP'),
        (101, 200, 'bbox_mAP_50'),
        (250, 400, 'bbox_mAP_50'),
    ],
)
def test_detections_cover_the_objects(most, detections, score):
    limits = ObjectLimits(most)
    assert (limits.detections, limits.score) == (detections, score)
    assert limits.are_usual == (detections == 100)


ONE_STAGE = dict(nms_pre=1000, max_per_img=100)
TWO_STAGES = dict(rpn=dict(nms_pre=9000, max_per_img=100), rcnn=dict(max_per_img=900))
QUERIES = dict(panoptic_head=dict(num_queries=100), test_cfg=dict(max_per_image=100))
SPARSE = dict(rpn=None, rcnn=dict(max_per_img=300))


@pytest.mark.parametrize(
    'model, expected',
    [
        (dict(test_cfg=ONE_STAGE), dict(nms_pre=4000, max_per_img=400)),
        # nothing becomes smaller
        (
            dict(test_cfg=TWO_STAGES),
            dict(TWO_STAGES, rpn=dict(nms_pre=9000, max_per_img=800)),
        ),
        (QUERIES, dict(max_per_image=400)),
        (
            dict(rpn_head=dict(num_proposals=100), test_cfg=SPARSE),
            dict(rcnn=dict(max_per_img=400)),
        ),
    ],
)
def test_every_kind_of_detector(model, expected):
    entries = ObjectLimits(250).entries(model)
    assert entries.pop('test_cfg') == expected
    for part, queries in entries.items():
        assert model[part].keys() == queries.keys() and {*queries.values()} == {400}


def test_regions_of_a_training():
    """They are raised where the base config has fewer."""
    cfg = dict(train_cfg=dict(rpn_proposal=dict(nms_pre=2000, max_per_img=1000)))
    cfg['test_cfg'] = TWO_STAGES
    assert 'train_cfg' not in ObjectLimits(250).entries(cfg)
    more = dict(nms_pre=6000, max_per_img=3000)
    entries = ObjectLimits(1000).entries(cfg)
    assert entries['train_cfg'] == dict(rpn_proposal=more)


def test_queries():
    lines = ObjectLimits(900).lines(dict(num_queries=900, test_cfg=dict(max_per_img=3)))
    assert 'model.update(num_queries=1400)' in lines and "'max_per_img': 1400" in lines


def test_small_photos():
    sizes = [(160, 140), (400, 24), (20, 20)]
    assert check_sizes(sizes, (160, 140)) == (160, 10)
    assert needs_padding((160, 10)) and not needs_padding((140, 140))
    with pytest.raises(ValueError, match='400 x 2 pixels becomes 80 x 0 .*cut it'):
        check_sizes([*sizes, (400, 2)], (160, 140), 0.5)


def test_large_photos_of_label_maps():
    """Those that become less than half as large, and so what is in them, are said."""
    (note,) = reduced_notes((3000, 2000), (768, 512))
    text = 'photos of 3000 x 2000 become 768 x 512 pixels: what is below 32 x 32 is '
    assert str(note).startswith(text) and str(note).endswith('cut photos into tiles')
    assert not reduced_notes((1024, 1024), (512, 512))
    assert not reduced_notes((64, 48), (171, 128))


def write_objects(folder, count, outlines):
    """Ten photos with a number of objects in each."""
    images, objects = [], []
    folder.mkdir()
    for i in range(10):
        Image.new('RGB', (320, 240), (i, 9, 9)).save(folder / f'{i}.png')
        images.append(dict(id=i, file_name=f'{i}.png', width=320, height=240))
        for k in range(count):
            x, y = 8 * (k % 40), 8 * (k // 40)
            entry = dict(id=len(objects) + 1, image_id=i, category_id=1, iscrowd=0)
            entry.update(bbox=[x, y, 6, 6], area=36)
            if outlines:
                entry['segmentation'] = [[x, y, x + 6, y, x + 6, y + 6, x + 2, y + 5]]
            objects.append(entry)
    content = dict(
        images=images, annotations=objects, categories=[dict(id=1, name='a')]
    )
    (folder / 'all.json').write_text(json.dumps(content))


@pytest.mark.parametrize('memory', [0, 8])
@pytest.mark.parametrize('outlines', [False, True])
def test_a_config_for_many_objects(outlines, memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Devices, 'find', lambda: Devices(1, memory))
    write_objects(Path('my'), 250, outlines)
    argv = ['--data', 'my', '--task', 'det', '--out', 'mine.py', '--no-estimate']
    tool.main([*argv, '--epochs', '9'])
    cfg = load_config('mine.py', warn=pytest.fail)
    test_cfg = cfg.model.test_cfg
    boxes = cfg.val_evaluator
    if outlines or memory:  # with a GPU, boxes start from a detector with masks, too
        assert (test_cfg.rcnn.max_per_img, test_cfg.rpn.max_per_img) == (400, 1000)
        assert cfg.model.train_cfg.rpn_proposal.max_per_img >= 800
    else:
        assert (test_cfg.max_per_img, test_cfg.nms_pre) == (400, 4000)
    if outlines:
        boxes, masks = boxes
        assert (boxes.metric, masks.metric) == ('bbox', 'segm')
    assert boxes.proposal_nums == (100, 300, 1000)
    assert cfg.default_hooks.checkpoint.save_best == 'coco/bbox_mAP_50'
    assert cfg.tta_model.tta_cfg.max_per_img == 400
