"""Wrong options of one backbone; test_battery.py has those that all refuse."""

import miniature_backbones as battery
import pytest

pytestmark = pytest.mark.openmmlab

ELFATT = dict(type='ELFATT')
PYRAMID, PLAIN = battery.PYRAMID, battery.PLAIN
STEMMED = dict(battery.STEMMED, series='b')
LAST = dict(out_type='cls_token', out_indices=(0, 1))
WRONG = {
    'PyramidTransformer': [
        (dict(attention=[ELFATT]), 'attention.*4 stages.*1'),
        (dict(block=[dict()] * 3), 'block.*4 stages.*3'),
        (dict(out_type='cls_token'), "cls_token.*'avg_featmap'"),
        (dict(LAST, with_cls_token=True), r'out_indices.*\(0, 1\)'),
        (dict(attention='ELFAT'), "attention must be a config.*'ELFAT'"),
        (dict(attention=[ELFATT, [ELFATT, 'x'], ELFATT, ELFATT]), "must be.*'x'"),
        (dict(norm_cfg=dict(kind='GN')), "norm_cfg must be a config.*'GN'"),
        (dict(stem='overlap'), "stem must be a config.*'overlap'"),
        (dict(img_size=0), 'img_size must be .* an integer from 1 on, got 0'),
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
        (dict(attention='talking'), "attention must be a config.*'talking'"),
        (dict(arch=PLAIN), 'num_class_layers'),
        (dict(arch=dict(PLAIN, num_class_layers=0)), 'num_class_layers.*got 0'),
    ],
    'EfficientViT': [
        (dict(arch=dict(STEMMED, embed_dims=[8] * 4)), 'the stem.*four stages'),
        (
            dict(arch=dict(STEMMED, depths=[1, 1, 0, 1, 1])),
            r'depths.*\[1, 1, 0, 1, 1\]',
        ),
        (dict(arch=dict(STEMMED, series='c')), "series of arch.*'b', 'l'.*'c'"),
        (dict(arch=dict(STEMMED, head_dims=7)), r'head_dims.*divides.*\[24, 32\].*7'),
        (dict(arch=dict(STEMMED, head_dims=0)), 'head_dims.*positive.*0'),
        (dict(attention='ELFAT'), "attention must be a config.*'ELFAT'"),
        (dict(norm_cfg=dict(kind='GN')), "norm_cfg must be a config.*'GN'"),
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


STEM = dict(type='ConvStem', mid_channels=4)
CONVS = dict(patch_embed=STEM, merging=dict(type='ConvEmbedding'))
# options, words of the error, and options that the words advise
REMEDIES = [
    (
        *('PyramidTransformer', dict(out_type='cls_token'), "'avg_featmap' serves"),
        dict(out_type='avg_featmap'),
    ),
    (
        *('SwinTransformer', dict(norm_cfg=dict(type='BN')), 'give patch_embed and'),
        dict(CONVS, norm_cfg=dict(type='BN')),
    ),
    (
        *('SwinTransformer', dict(attention='linear'), "'agent', 'efficient'"),
        dict(attention='efficient'),
    ),
    (
        *('SwinTransformer', dict(attention='global', block_sizes=49), 'elfatt'),
        dict(attention='elfatt', block_sizes=49),
    ),
    (
        *('VisionTransformer', LAST, r'out_indices must be \(3,\)'),
        dict(LAST, out_indices=(3,)),
    ),
]


@pytest.mark.parametrize('name, options, advice, then', REMEDIES)
def test_what_the_error_advises_works(name, options, advice, then):
    with pytest.raises(ValueError, match=advice):
        battery.build(name, **options)
    battery.build(name, **then)(battery.images())
