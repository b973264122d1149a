"""Wrong options of one backbone; test_battery.py has those that all refuse."""

import pytest
from loading import load_module

pytestmark = pytest.mark.openmmlab

battery = load_module('tests/test_models/test_backbones/test_battery.py')
ELFATT = dict(type='ELFATT')
PYRAMID, PLAIN = battery.PYRAMID, battery.PLAIN
LAST = dict(out_type='cls_token', out_indices=(0, 1))
WRONG = {
    'PyramidTransformer': [
        (dict(attention=[ELFATT]), 'attention.*4 stages.*1'),
        (dict(block=[dict()] * 3), 'block.*4 stages.*3'),
        (dict(out_type='cls_token'), "cls_token.*'avg_featmap'"),
        (dict(LAST, with_cls_token=True), r'out_indices.*\(0, 1\)'),
        (dict(attention='ELFAT'), "attention must be a config.*'ELFAT'"),
        (dict(attention=[ELFATT, [ELFATT, 'x'], ELFATT, ELFATT]), "must be.*'x'"),
        (dict(stem='overlap'), "stem must be a config.*'overlap'"),
        (dict(img_size=0), 'img_size must be positive, got 0'),
        (dict(arch=dict(PYRAMID, depths=[1, 0, 1, 1])), r"arch.*'depths': \[1, 0, 1"),
        (dict(arch=dict(PYRAMID, embed_dims=[8])), r"arch.*'embed_dims': \[8\]"),
    ],
    'SwinTransformer': [
        (dict(attention='linear'), "attention.*'agent', 'efficient'.*got 'linear'"),
        (dict(attention=[None, 'elfat', None, None]), "must be.*'elfat'"),
        (dict(attention='global', block_sizes=49), "block_sizes.*elfatt.*'global'"),
        (dict(attention=ELFATT, split_ratio=0.5), 'split_ratio.*elfatt'),
        (dict(attention=ELFATT, img_size=96), "img_size.*'local'.*ELFATT"),
        (dict(img_size=31), 'img_size.*31'),
        (dict(attention='elfatt', block_sizes=(49, 49)), 'block_sizes.*3 stages.*2'),
        (dict(attention=[ELFATT] * 3), 'attention.*4 stages.*3'),
        (dict(norm_cfg=dict(type='GN')), 'norm_cfg.*would change nothing'),
    ],
    'CaiT': [
        (dict(arch=PLAIN), 'num_class_layers'),
        (dict(arch=dict(PLAIN, num_class_layers=0)), 'num_class_layers.*got 0'),
    ],
    'VisionTransformer': [
        (dict(num_layers=0), 'num_layers.*positive integer, got 0'),
        (dict(patch_size=7), 'patch_size=7 and img_size=64'),
        (dict(patch_size=0), 'patch_size=0'),
        (LAST, r'out_indices must be \(3,\)'),
    ],
}


@pytest.mark.parametrize(
    'name, options, message', [(name, *row) for name in WRONG for row in WRONG[name]]
)
def test_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        battery.build(name, **options)
