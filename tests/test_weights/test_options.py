"""Options of a checkpoint that its keys don't show."""

import logging

import pytest
import torch
from mmengine.config import Config

from mmlinattn.models import CSWinTransformer, SOFTPlusPlus, VisionTransformer
from mmlinattn.weights import pretrained
from mmlinattn.weights.options import compare_options, find_backbone

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=[16], depths=[2], num_heads=[2])
SOFT = dict(arch=ARCH, sampling_ratios=[8], kernel_sizes=[3])
SMALL = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[2, 2, 2, 2])


def plain(num_layers, **more):
    return dict(embed_dims=8, num_layers=num_layers, num_heads=2, **more)


def nested(depth):
    cfg = dict(type='mmlinattn.SOFT')
    for _ in range(depth):
        cfg = dict(cfg, norm_cfg=cfg)
    return cfg


def meta_of(backbone, **model):
    """Metadata as MMEngine's runner writes them."""
    cfg = Config(
        dict(model=dict(type='X', backbone=backbone, **model), train=dict(a=1))
    )
    return dict(cfg=cfg.pretty_text, epoch=1)


@pytest.fixture
def compare():
    """Compares SOFT++ with what was stored of a SOFT."""

    def run(kind='SOFT', options={}, **stored):
        model = SOFTPlusPlus(**SOFT, **options)
        cfg = dict(type=f'mmlinattn.{kind}', **SOFT, **stored)
        return compare_options(model, meta_of(cfg))

    return run


def test_normalization(compare):
    assert compare() == [
        'attn_norm=False there, attn_norm=True here '
        '(stages.0.blocks.0.attn and 1 more)',
        'ridge=0.01 there, ridge=0.0 here (stages.0.blocks.0.attn and 1 more)',
    ]
    assert compare(attn_norm=True) == compare('SOFTPlusPlus') == []


@pytest.mark.parametrize(
    'option, value, line',
    [
        ('num_iters', 6, 'num_iters=6 there, num_iters=20 here'),
        ('ridge', 0.5, 'ridge=0.5 there, ridge=0.0 here'),
        ('sampler', 'pool', "type='PoolingSampler' there, type='ConvSampler' here"),
    ],
)
def test_other_options(compare, option, value, line):
    (found,) = compare('SOFTPlusPlus', **{option: value})
    assert found.startswith(line)


def test_solvers(compare):
    """Newton and spectral are one operator, Cholesky is another."""
    for solver in ('polynomial', 'spectral'):
        assert compare('SOFTPlusPlus', solver=solver) == []
    cholesky = dict(solver='cholesky', ridge=0.01)
    lines = compare('SOFTPlusPlus', **cholesky)
    assert lines[0].startswith("solver='cholesky' there, solver='newton' here")
    assert compare('SOFTPlusPlus', options=cholesky, **cholesky) == []


def test_heads_and_windows():
    """They leave no trace in the keys either."""
    model = CSWinTransformer(SMALL, 'local')
    stored = dict(type='mmlinattn.CSWinTransformer', attention='local')
    arch = dict(SMALL, num_heads=[2, 4, 2, 2])
    lines = compare_options(model, meta_of(dict(stored, arch=arch)))
    assert lines[0].startswith('num_heads=4 there, num_heads=2 here (stages.1.blocks.0')
    model = VisionTransformer(dict(embed_dims=8, num_layers=1, num_heads=2))
    stored = dict(
        type='mmlinattn.VisionTransformer',
        arch=dict(embed_dims=8, num_layers=1, num_heads=4),
        img_size=32,
        drop_path_rate=0.1,
    )
    lines = compare_options(model, meta_of(stored))
    assert 'num_heads=4 there, num_heads=2 here (blocks.0.attn)' in lines
    assert not [line for line in lines if 'drop' in line or 'hw_shape' in line]


def test_training_options_are_no_difference(compare):
    assert not compare(
        'SOFTPlusPlus',
        out_indices=(0,),
        frozen_stages=1,
        with_cp=True,
        norm_eval=True,
        drop_path_rate=0.3,
        drop_rate=0.1,
        norm_cfg=dict(type='SyncBN', momentum=0.2),
        init_cfg=dict(type='Pretrained', checkpoint='nowhere.pth'),
    )


@pytest.mark.parametrize(
    'meta',
    [
        None,
        [],
        {},
        dict(cfg=None),
        dict(cfg='not = python ='),
        dict(cfg='model = 3'),
        dict(cfg='x = 1'),
        dict(cfg='model = dict(type="X")'),
        meta_of(dict(type='mmdet.ResNet', depth=50)),
        meta_of(dict(type='mmlinattn.SOFT', arch='tiny', no_such_argument=1)),
        meta_of(dict(type='mmlinattn.SOFT', arch='none')),
        # these would take hours, or all memory
        meta_of(dict(type='mmlinattn.SOFT', arch=dict(ARCH, depths=[10**8]))),
        meta_of(dict(type='mmlinattn.SOFT', arch=dict(ARCH, depths=[9**5, -(9**5)]))),
        meta_of(dict(type='mmlinattn.SOFT', arch=dict(ARCH, embed_dims=[10**15]))),
        meta_of(dict(type='mmlinattn.VisionTransformer', arch=plain(10**5))),
        meta_of(
            dict(type='mmlinattn.VisionTransformer', arch=plain(1), num_layers=10**5)
        ),
        meta_of(dict(type='mmlinattn.CaiT', arch=plain(1, num_class_layers=10**5))),
        meta_of(
            dict(
                type='mmlinattn.VisionTransformer',
                arch=plain(1),
                attention=dict(type='PerformerAttention', num_features=10**9),
            )
        ),
        dict(cfg=dict(model=dict(backbone=nested(3000)))),
    ],
)
def test_nothing_to_compare(meta):
    assert compare_options(SOFTPlusPlus(**SOFT), meta) == []


def test_config_of_a_checkpoint_is_not_run(tmp_path):
    """It is text of whoever made the file."""
    folder = tmp_path / 'made'
    call = f'__import__("os").mkdir({str(folder)!r})'
    attacks = [
        f'x = {call}\nmodel = dict(backbone=dict(type="mmlinattn.SOFT", arch={call}))',
        f'model = dict(backbone=dict(type="os.mkdir", path={str(folder)!r}))',
        'model = dict(backbone=dict(type="mmlinattn.SOFT", arch="tiny", attention='
        f'dict(type="os.mkdir", path={str(folder)!r})))',
        'model = dict(backbone=dict(type="mmlinattn.SOFT", arch="tiny", norm_cfg='
        f'dict(type="os.mkdir", path={str(folder)!r})))',
        '(' * 3000 + ')' * 3000,
    ]
    for text in attacks:
        assert compare_options(SOFTPlusPlus(**SOFT), dict(cfg=text)) == []
    assert not folder.exists()


def test_literals():
    backbone = dict(a=[1, -2.5, None], b=(True, 'x'), c={'d': dict(e=1)})
    assert find_backbone(meta_of(backbone)) == backbone
    assert find_backbone(dict(cfg=dict(model=dict(backbone=backbone)))) == backbone


def test_loading_says_it(tmp_path, monkeypatch):
    """Weights of an ImageNet run that wasn't normalized, in a normalized backbone."""
    stored = dict(type='mmlinattn.SOFT', **SOFT)
    weights = SOFTPlusPlus(**SOFT).state_dict()
    state_dict = {f'backbone.{key}': x for key, x in weights.items()}
    path = tmp_path / 'soft.pth'
    torch.save(dict(meta=meta_of(stored), state_dict=state_dict), path)
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda *args: said.append(args))
    init_cfg = dict(type='Pretrained', checkpoint=str(path))
    SOFTPlusPlus(**SOFT, init_cfg=init_cfg).init_weights()
    warnings = [text for text, _, level in said if level == logging.WARNING]
    assert len(warnings) == 2
    assert f'an option differs from the one that {path} was trained with' in warnings[0]
    assert 'attn_norm=False there, attn_norm=True here' in warnings[0]
