"""Options of a checkpoint that its keys don't show."""

import logging

import pytest
import torch
from mmengine.config import Config

from mmlinattn.models import CSWinTransformer, SOFTPlusPlus, VisionTransformer
from mmlinattn.weights.options import compare_options

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=[16], depths=[2], num_heads=[2])
SOFT = dict(arch=ARCH, sampling_ratios=[8], kernel_sizes=[3])
SMALL = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[2, 2, 2, 2])


def meta_of(kind, **options):
    """Metadata in the form of MMEngine's runner."""
    backbone = dict(type=f'mmlinattn.{kind}', **options)
    return dict(cfg=Config(dict(model=dict(backbone=backbone), x=(1,))).pretty_text)


def compare(kind='SOFTPlusPlus', options={}, **stored):
    """Compares SOFT++ with the stored options of a SOFT."""
    return compare_options(
        SOFTPlusPlus(**SOFT, **options), meta_of(kind, **SOFT, **stored)
    )


def test_normalization():
    assert compare('SOFT') == [
        'attn_norm=False there, attn_norm=True here '
        '(stages.0.blocks.0.attn and 1 more)',
        'ridge=0.01 there, ridge=0.0 here (stages.0.blocks.0.attn and 1 more)',
    ]
    assert compare('SOFT', attn_norm=True) == compare('SOFTPlusPlus') == []


@pytest.mark.parametrize(
    'stored, line',
    [
        (dict(num_iters=6), 'num_iters=6 there, num_iters=20 here'),
        (dict(ridge=0.5), 'ridge=0.5 there, ridge=0.0 here'),
        (dict(sampler='pool'), "type='PoolingSampler' there, type='ConvSampler' here"),
        # another operator
        (
            dict(solver='cholesky', ridge=0.01),
            "solver='cholesky' there, solver='newton",
        ),
    ],
)
def test_other_options(stored, line):
    assert compare(**stored)[0].startswith(line)
    assert compare(options=stored, **stored) == []


def test_heads_and_windows():
    """They leave no trace in the keys either."""
    model = CSWinTransformer(SMALL, 'local')
    arch = dict(SMALL, num_heads=[2, 4, 2, 2])
    meta = meta_of('CSWinTransformer', attention='local', arch=arch)
    lines = compare_options(model, meta)
    assert lines[0].startswith('num_heads=4 there, num_heads=2 here (stages.1.blocks.0')
    arch = dict(embed_dims=8, num_layers=1, num_heads=2)
    meta = meta_of('VisionTransformer', arch=dict(arch, num_heads=4), img_size=32)
    lines = compare_options(VisionTransformer(arch), meta)
    assert 'num_heads=4 there, num_heads=2 here (blocks.0.attn)' in lines
    assert not [line for line in lines if 'hw_shape' in line]


def test_training_options_are_no_difference():
    assert not compare(
        solver='spectral',  # another way to the same operator
        out_indices=(0,),
        frozen_stages=1,
        with_cp=True,
        norm_eval=True,
        drop_path_rate=0.3,
        drop_rate=0.1,
        norm_cfg=dict(type='SyncBN', momentum=0.2),
    )
    init_cfg = dict(type='Pretrained', checkpoint='nowhere.pth')
    assert len(compare('SOFT', init_cfg=init_cfg)) == 2


@pytest.mark.parametrize(
    'meta',
    [
        None,
        dict(cfg='not = python ='),
        dict(cfg='model = 3'),
        dict(cfg='(' * 3000 + ')' * 3000),
        meta_of('SOFT', arch='none'),
        # it would take hours, or all memory
        meta_of('SOFT', arch=dict(ARCH, depths=[10**8])),
        meta_of('SOFT', arch='tiny', attention=dict(type='X', num_features=10**9)),
    ],
)
def test_nothing_to_compare(meta):
    assert compare_options(SOFTPlusPlus(**SOFT), meta) == []


def test_config_of_a_checkpoint_is_not_run(tmp_path):
    """It is text from the author of the file."""
    folder = tmp_path / 'made'
    call = f'__import__("os").mkdir({str(folder)!r})'
    make = dict(type='os.mkdir', path=str(folder))
    for meta in (
        dict(cfg=f'x = {call}\nmodel = dict(backbone=dict(type="SOFT", arch={call}))'),
        dict(cfg=f'model = dict(backbone={make!r})'),
        meta_of('SOFT', arch='tiny', attention=make),
        meta_of('SOFT', arch='tiny', norm_cfg=make),
    ):
        assert compare_options(SOFTPlusPlus(**SOFT), meta) == []
    assert not folder.exists()


def test_loading_warns(tmp_path, said):
    """Weights of an ImageNet run that wasn't normalized, in a normalized backbone."""
    state_dict = SOFTPlusPlus(**SOFT).state_dict()
    path = tmp_path / 'soft.pth'
    torch.save(dict(meta=meta_of('SOFT', **SOFT), state_dict=state_dict), path)
    init_cfg = dict(type='Pretrained', checkpoint=str(path))
    SOFTPlusPlus(**SOFT, init_cfg=init_cfg).init_weights()
    warnings = [text for level, text in said if level == logging.WARNING]
    assert len(warnings) == 2
    assert f'an option differs from the one that {path} was trained with' in warnings[0]
    assert 'attn_norm=False there, attn_norm=True here' in warnings[0]
