"""Swin and CSWin with the papers' attentions."""

from itertools import chain

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from mmlinattn.models import (
    ELFATT,
    SOFT,
    AgentAttention,
    ConvEmbedding,
    CrossShapedWindowAttention,
    CSWinTransformer,
    EfficientAttention,
    FocusedLinearAttention,
    PatchMerging,
    SoftmaxAttention,
    SwinTransformer,
    WindowAttention,
)
from mmlinattn.models.backbones.presets import OVERLAPPING_MERGING, OVERLAPPING_STEM

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=8, depths=[1, 2, 4, 1], num_heads=[2, 2, 4, 4])
BOTH = pytest.mark.parametrize('family', (SwinTransformer, CSWinTransformer))


def from_config(family, **options):
    """A model from the registry that every mm config is built from."""
    return MODELS.build(dict(type=f'mmlinattn.{family.__name__}', arch=ARCH, **options))


def attentions(model):
    """The attentions of each stage."""
    return [[block.attn for block in stage.blocks] for stage in model.stages]


def types(model):
    return [[type(attn) for attn in stage] for stage in attentions(model)]


def is_overlapping(model):
    stem, *merging = (stage.embedding for stage in model.stages)
    kernels = [
        e.layer[0].kernel_size if isinstance(e, ConvEmbedding) else None
        for e in (stem, *merging)
    ]
    if kernels == [(7, 7), (3, 3), (3, 3), (3, 3)]:
        assert stem.layer[0].stride == (4, 4)
        assert stem.layer[0].padding == (2, 2)
        layers = [e.layer for e in (stem, *merging)]
        assert all(isinstance(layer[1], nn.LayerNorm) for layer in layers)
        assert all(isinstance(layer[2], nn.Identity) for layer in layers)
        assert all(layer[0].bias is not None for layer in layers)
        return True
    assert kernels == [(4, 4), None, None, None]
    assert all(isinstance(e, PatchMerging) for e in merging)
    return False


def alternating(linear):
    """The arrangement of the ELFATT paper, in the depths of ARCH."""
    softmax = SoftmaxAttention
    return [[linear], [linear] * 2, [softmax, linear] * 2, [softmax]]


STRIPES = CrossShapedWindowAttention
SWIN = {
    'local': [
        [WindowAttention],
        [WindowAttention] * 2,
        [WindowAttention] * 4,
        [WindowAttention],
    ],
    'global': [
        [SoftmaxAttention],
        [SoftmaxAttention] * 2,
        [SoftmaxAttention] * 4,
        [SoftmaxAttention],
    ],
    'elfatt': alternating(ELFATT),
    'efficient': alternating(EfficientAttention),
    'agent': [
        [AgentAttention],
        [AgentAttention] * 2,
        [AgentAttention] * 4,
        [WindowAttention],
    ],
    'flatten': [
        [FocusedLinearAttention],
        [FocusedLinearAttention] * 2,
        [WindowAttention] * 4,
        [WindowAttention],
    ],
}
CSWIN = {
    'local': [[STRIPES], [STRIPES] * 2, [STRIPES] * 4, [SoftmaxAttention]],
    'global': SWIN['global'],
    'elfatt': alternating(ELFATT),
    'efficient': alternating(EfficientAttention),
    'agent': [
        [AgentAttention],
        [AgentAttention] * 2,
        [STRIPES] * 4,
        [SoftmaxAttention],
    ],
    'flatten': [
        [FocusedLinearAttention],
        [FocusedLinearAttention] * 2,
        [STRIPES] * 4,
        [SoftmaxAttention],
    ],
}


@pytest.mark.parametrize('name', SWIN)
def test_swin(name):
    model = SwinTransformer(ARCH, attention=name)
    assert types(model) == SWIN[name]
    assert is_overlapping(model) == (name == 'elfatt')


@pytest.mark.parametrize('name', CSWIN)
def test_cswin(name):
    model = CSWinTransformer(ARCH, attention=name)
    assert types(model) == CSWIN[name]
    assert is_overlapping(model)


@pytest.mark.parametrize('name', SWIN)
@BOTH
def test_any_size(family, name):
    model = family(ARCH, attention=name, out_indices=(0, 3)).eval()
    first, last = model(torch.randn(1, 3, 45, 70))
    assert first.shape == (1, 8, 12, 18)
    assert last.shape == (1, 64, 2, 3)


def test_defaults():
    assert types(SwinTransformer(ARCH)) == SWIN['local']
    assert types(CSWinTransformer(ARCH)) == CSWIN['local']


@pytest.mark.parametrize('name', ('global', 'elfatt', 'efficient', 'local'))
def test_positional_encoding_everywhere(name):
    """The papers' VaniATT, EFFATT and CSWin have LePE in every block."""
    for attn in chain(*attentions(CSWinTransformer(ARCH, attention=name))):
        lepe = attn.local_lepe if isinstance(attn, ELFATT) else attn.lepe
        assert lepe is not None


def test_shapes_of_local_attention():
    swin = attentions(SwinTransformer(ARCH, attention='local'))
    assert [attn.shift_size for attn in swin[2]] == [0, 3, 0, 3]
    cswin = attentions(CSWinTransformer(ARCH, attention='local'))
    assert [stage[0].stripe_width for stage in cswin[:3]] == [1, 2, 7]


@BOTH
def test_agents_grow_with_the_stage(family):
    stages = attentions(family(ARCH, attention='agent'))
    found = [
        (attn.agent_side**2, attn.agent_bias.rows.size(2))
        for attn, *_ in stages
        if isinstance(attn, AgentAttention)
    ]
    assert found == [(9, 56), (16, 28), (49, 14)][: len(found)]
    assert len(found) == (3 if family is SwinTransformer else 2)


@pytest.mark.parametrize('attention', ('local', 'agent', 'flatten'))
@BOTH
def test_img_size(family, attention):
    """Windows are the last stage's map, stripes of the third stage as wide; biases and
    positions are stored for the maps."""
    model = from_config(family, attention=attention, img_size=96)
    sides = [24, 12, 6, 3]
    for i, stage in enumerate(attentions(model)):
        for attn in stage:
            if isinstance(attn, WindowAttention):
                assert attn.window_size == 3 and attn.shift_size in (0, 1)
            elif isinstance(attn, CrossShapedWindowAttention):
                assert attn.stripe_width == [1, 2, 3][i]
            elif isinstance(attn, AgentAttention):
                assert attn.agent_bias.rows.shape[2:] == (sides[i], 1)
                assert attn.query_bias.columns.shape[2:] == (1, sides[i])
            elif isinstance(attn, FocusedLinearAttention):
                assert attn.pos_embed.hw_shape == (sides[i], sides[i])
            else:
                assert isinstance(attn, SoftmaxAttention)


@pytest.mark.parametrize('attention', ('local', 'agent', 'flatten'))
@BOTH
def test_weights_for_other_images(family, attention):
    """Tables of windows, rows and columns of biases, and positions are resized."""
    small = from_config(family, attention=attention, img_size=64).eval()
    large = from_config(family, attention=attention, img_size=96).eval()
    large.load_state_dict(small.state_dict())
    same = from_config(family, attention=attention, img_size=64).eval()
    same.load_state_dict(large.state_dict())
    images = torch.randn(1, 3, 96, 96)
    for model in (small, large, same):
        assert model(images)[-1].isfinite().all()
    for key, value in large.state_dict().items():
        if not key.endswith(('_table', 'pos_embed.table', 'rows', 'columns')):
            assert value.equal(small.state_dict()[key]), key


def test_resized_table_of_windows():
    """As Swin's own code does: bicubic, over the differences of positions."""
    small, large = (WindowAttention(8, 2, window_size=side) for side in (2, 3))
    large.load_state_dict(small.state_dict())
    maps = small.relative_position_bias_table.detach().T.view(1, 2, 3, 3)
    expected = nn.functional.interpolate(maps, (5, 5), mode='bicubic')
    assert large.relative_position_bias_table.equal(expected.view(2, 25).T)
    table = dict(relative_position_bias_table=torch.zeros(9, 3))
    with pytest.raises(RuntimeError, match='relative_position_bias_table'):
        large.load_state_dict({**small.state_dict(), **table})


def test_more_agents_in_dense_models():
    options = dict(attention='agent', arch=ARCH)
    model = SwinTransformer(dense_agents=True, **options).eval()
    plain = SwinTransformer(**options).eval()
    model.load_state_dict(plain.state_dict())
    sides = [attn.agent_side for attn, *_ in attentions(model)[:3]]
    assert sides == [9, 12, 14]
    images = torch.randn(1, 3, 64, 96)
    assert not model(images)[0].equal(plain(images)[0])


@pytest.mark.parametrize('arch, num_agents', (('tiny', 6), ('small', 0), ('base', 2)))
def test_agents_in_the_third_stage_of_swin(arch, num_agents):
    with torch.device('meta'):
        stage = attentions(SwinTransformer(arch, attention='agent'))[2]
    assert [isinstance(a, AgentAttention) for a in stage] == (
        [True] * num_agents + [False] * (len(stage) - num_agents)
    )
    shifts = [a.shift_size for a in stage[num_agents:]]
    assert shifts == [0, 3] * (len(shifts) // 2)


@pytest.mark.parametrize(
    'options, changed',
    (
        (dict(), dict()),
        (dict(block_sizes=49), dict(block_sizes=[49, 49, 49])),
        (dict(block_sizes=(49, 49, 196)), dict(block_sizes=[49, 49, 196])),
        (dict(split_ratio=0.25), dict(split=(2, 6))),
        (dict(split_ratio=0.75), dict(split=(6, 2))),
        (dict(split_ratio=1), dict(split=(8, 0))),
        (dict(split_ratio=0.0), dict(split=(0, 8))),
        (dict(lepe=False), dict(lepe=False)),
    ),
    ids=str,
)
@BOTH
def test_options_of_elfatt(family, options, changed):
    """The variants of the paper's ablations, each by one word of config."""
    expected = dict(block_sizes=[196] * 3, split=(4, 4), lepe=True)
    expected.update(changed)
    model = from_config(family, attention='elfatt', **options).eval()
    stages = attentions(model)
    assert types(model) == SWIN['elfatt']
    linear = [stages[0][0], stages[1][1], stages[2][1]]
    assert [attn.block_size for attn in linear] == expected['block_sizes']
    assert linear[0].half_dims == expected['split']
    with_lepe = any('lepe' in key for key in model.state_dict())
    assert with_lepe == expected['lepe']
    assert model(torch.randn(1, 3, 64, 64))[-1].isfinite().all()


@pytest.mark.parametrize('levels', ('', '1', '2', '12', '123', '1234'))
@pytest.mark.parametrize('alternating', (False, True))
@BOTH
def test_levels_of_elfatt(family, alternating, levels):
    """Which levels have ELFATT is a list with one entry a stage."""
    linear = dict(type='ELFATT', block_size=49)
    softmax = dict(type='SoftmaxAttention', lepe=True)
    pattern = [softmax, linear] if alternating else [linear]
    model = from_config(
        family,
        attention=[pattern if level in levels else softmax for level in '1234'],
        patch_embed=OVERLAPPING_STEM,
        merging=OVERLAPPING_MERGING,
    ).eval()
    for level, found in zip('1234', types(model)):
        expected = [SoftmaxAttention, ELFATT] if alternating else [ELFATT]
        if level not in levels:
            expected = [SoftmaxAttention]
        assert found == (expected * len(found))[: len(found)]
    assert is_overlapping(model)
    assert model(torch.randn(1, 3, 64, 64))[-1].isfinite().all()


@pytest.mark.parametrize(
    'attention',
    (dict(type='ELFATT'), [dict(type='ELFATT')] * 4, [[dict(type='ELFATT')]] * 4),
    ids=('config', 'list', 'patterns'),
)
@BOTH
def test_configs_change_only_the_attention(family, attention):
    model = family(ARCH, attention=attention)
    assert {attn for stage in types(model) for attn in stage} == {ELFATT}
    assert is_overlapping(model) == (family is CSWinTransformer)


def test_patch_embed_and_merging_override():
    stem = dict(type='ConvStem', norm_cfg=dict(type='BN'))
    model = SwinTransformer(ARCH, attention='elfatt', patch_embed=stem)
    assert type(model.stages[0].embedding).__name__ == 'ConvStem'
    assert isinstance(model.stages[1].embedding, ConvEmbedding)
    merging = dict(type='PatchMerging')
    model = CSWinTransformer(ARCH, merging=merging)
    assert isinstance(model.stages[1].embedding, PatchMerging)
    assert isinstance(model.stages[0].embedding, ConvEmbedding)


@pytest.mark.parametrize('depths', ([1], [2, 1], [1, 1, 2]), ids=str)
@pytest.mark.parametrize('name', SWIN)
@BOTH
def test_any_number_of_stages(family, name, depths):
    heads = [2, 2, 4][: len(depths)]
    arch = dict(embed_dims=8, depths=depths, num_heads=heads)
    model = family(arch, attention=name).eval()
    assert len(model(torch.randn(1, 3, 64, 64))) == len(depths)


@pytest.mark.parametrize(
    'attention',
    (
        'ELFATT',
        'SoftmaxAttention',
        'WindowAttention',
        'CrossShapedWindowAttention',
        'EfficientAttention',
        'AgentAttention',
        'FocusedLinearAttention',
        'LinformerAttention',
        'PerformerAttention',
        'NystromAttention',
    ),
)
def test_soft_pyramid_takes_any_attention(attention):
    """The class token of its last stage stays with softmax attention."""
    model = SOFT(
        dict(ARCH, embed_dims=[8, 16, 24, 32]),
        attention=dict(type=attention),
        out_indices=(0, 3),
    ).eval()
    *first, last = ({attn.__name__ for attn in stage} for stage in types(model))
    assert first == [{attention}] * 3 and last == {'SoftmaxAttention'}
    outs = model(torch.randn(1, 3, 33, 47))
    assert [out.shape for out in outs] == [(1, 8, 9, 12), (1, 32, 2, 2)]


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(attention='linear'), "attention.*'agent', 'efficient'.*got 'linear'"),
        (dict(attention='global', block_sizes=49), "block_sizes.*elfatt.*'global'"),
        (dict(attention=dict(type='ELFATT'), split_ratio=0.5), 'split_ratio.*elfatt'),
        (dict(attention='local', lepe=False), "lepe.*elfatt.*'local'"),
        (dict(attention='global', img_size=96), "img_size.*'flatten'.*'global'"),
        (dict(attention='flatten', dense_agents=True), "dense_agents.*'flatten'"),
        (dict(img_size=31), 'img_size.*31'),
        (dict(attention='elfatt', block_sizes=(49, 49)), 'block_sizes.*3 stages.*2'),
        (dict(attention='elfatt', block_sizes=50), 'block_size.*square.*50'),
        (dict(attention='elfatt', split_ratio=2), 'split_ratio.*2'),
        (dict(attention=[dict(type='ELFATT')] * 3), 'attention.*4 stages.*3'),
        (dict(arch='t'), "arch.*got 't'"),
    ),
)
@BOTH
def test_wrong_options(family, options, message):
    with pytest.raises(ValueError, match=message):
        family(**{'arch': ARCH, **options})


@pytest.mark.parametrize(
    'arch, embed_dims, depths, num_heads',
    (
        ('tiny', 64, (1, 2, 21, 1), [2, 4, 8, 16]),
        ('small', 64, (2, 4, 32, 2), [2, 4, 8, 16]),
        ('base', 96, (2, 4, 32, 2), [4, 8, 16, 32]),
        ('large', 144, (2, 4, 32, 2), [6, 12, 24, 24]),
    ),
)
def test_official_cswins_have_names(arch, embed_dims, depths, num_heads):
    with torch.device('meta'):
        model = CSWinTransformer(arch)
    assert model.feature_channels == tuple(embed_dims * 2**i for i in range(4))
    assert model.depths == depths
    assert [x[0].num_heads for x in attentions(model)] == num_heads
    assert types(model)[0][0] == CrossShapedWindowAttention


def test_swin_and_cswin_share_a_parent():
    assert not issubclass(CSWinTransformer, SwinTransformer)
    assert CSWinTransformer.__mro__[1] is SwinTransformer.__mro__[1]
