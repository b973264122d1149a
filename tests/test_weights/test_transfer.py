"""Starting an ELFATT model from weights of Swin and CSWin."""

import logging
import re
from functools import partial

import antioversmoothing_fixture as antioversmoothing
import cswin_fixture as cswin
import pytest
import torch
import variants_fixture as variants
from loading import load_backbone

from mmlinattn.models import CSWinTransformer, SwinTransformer
from mmlinattn.utils.names import inside
from mmlinattn.weights.conversion import plan_conversion
from mmlinattn.weights.transfer import split_lepe

pytestmark = pytest.mark.openmmlab

PREFIX = 'backbone.'
load = partial(load_backbone, CSWinTransformer)


def sources_of(official, arch):
    """The official names that each entry of an ELFATT model starts from."""
    plan = plan_conversion(official, 'cswin')
    origin, named = inside(plan.sources(), PREFIX), inside(plan.apply(official), PREFIX)
    # the values are the tensors' numbers, in both halves
    numbers = {key: torch.full((2,), i) for i, key in enumerate(named)}
    names = CSWinTransformer(arch, 'elfatt').state_dict()
    return {
        key: [x for i in dict.fromkeys(value.tolist()) for x in origin[[*named][i]]]
        for key, value in split_lepe(numbers, names).items()
    }


def test_cswin_starts_from_agents(tmp_path):
    """All weights are used: LePE of all channels is split for upright and flat ones."""
    weights = variants.weights('agent_cswin')
    torch.save(dict(model=weights), tmp_path / 'agent.pth')
    for attention in ('local', 'elfatt'):
        model = load(tmp_path / 'agent.pth', variants.ARCHS['agent_cswin'], attention)
        attn = model.stages[1].blocks[1].attn
        local = attention == 'local'
        halves = attn.lepe if local else (attn.global_lepe, attn.local_lepe)
        stacked = torch.cat([x.weight for x in halves])
        assert stacked.equal(weights['stage2.1.attns.0.get_v.weight'])
        attention = model.stages[2].blocks[1].attn
        assert attention.qkv.weight.equal(weights['stage3.1.qkv.weight'])


@torch.no_grad()
def test_equal_where_stripes_see_the_whole_map(tmp_path):
    """Stripes of width 7 and blocks of 49 tokens are the whole map of 7 x 7 tokens."""
    torch.save(cswin.weights('backbone'), tmp_path / 'official.pth')
    local = load(tmp_path / 'official.pth', cswin.ARCH, 'local')
    elfatt = load(tmp_path / 'official.pth', cswin.ARCH, 'elfatt', block_sizes=49)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 49, 32, generator=generator)
    ours, theirs = (model.stages[2].blocks for model in (elfatt, local))
    torch.testing.assert_close(ours[0](x, (7, 7)), theirs[0](x, (7, 7)))
    # of the other block, the local half alone
    ours, theirs = ours[1].attn, theirs[1].attn
    ours.proj = theirs.proj = torch.nn.Identity()
    ours, theirs = (attn(x, (7, 7)).chunk(2, dim=-1) for attn in (ours, theirs))
    torch.testing.assert_close(ours[1], theirs[1])
    assert not ours[0].allclose(theirs[0], atol=0.1)


@pytest.mark.parametrize('source', ['official', 'converted'])
@pytest.mark.parametrize('kind', ['classifier', 'backbone'])
def test_start_when_loaded(convert, said, kind, source):
    """Every official entry is in its place."""
    official = cswin.weights(kind)
    if source == 'official':
        convert.dst.parent.mkdir()
        torch.save(dict(state_dict_ema=official), convert.dst)
    else:
        convert(official, family='cswin')
    model = load(convert.dst, cswin.ARCH, 'elfatt')
    values, sources = model.state_dict(), sources_of(official, cswin.ARCH)
    for key, keys in sources.items():
        assert values[key].equal(torch.cat([official[name] for name in keys]))
    names = [name for keys in sources.values() for name in keys]
    assert sorted(names) == sorted(x for x in official if not x.startswith('head.'))
    # a classifier has no norms of earlier maps
    fresh = {f'norm{i}.{x}' for i in range(3) for x in ('weight', 'bias')}
    assert values.keys() - sources.keys() == (fresh if kind == 'classifier' else set())
    first = sources['stages.2.blocks.1.attn.global_lepe.weight']
    assert first == ['stage3.1.attns.0.get_v.weight']
    ((level, text),) = said
    assert level == logging.WARNING
    counts = f'{len(sources)} of {len(values)} entries'
    assert f'STARTS from CSWin in {convert.dst}: {counts}' in text
    assert 'not trained with ELFATT and SoftmaxAttention, which 4 blocks' in text


def test_other_depths(tmp_path, said):
    """With a block more in stage 1, and one less in stage 3. These are named, and start
    as initialized."""
    arch = dict(cswin.ARCH, depths=[2, 1, 1, 1])
    torch.save(cswin.weights('backbone'), tmp_path / 'official.pth')
    block = load(tmp_path / 'official.pth', arch, 'elfatt').stages[0].blocks[1]
    assert 0.01 < block.attn.qkv.weight.std() < 0.03
    listed = said[0][1].split('not used')
    initial, unused = (re.findall(r"'(stages[^']+)'", text) for text in listed)
    assert len(initial) == len(unused) == 16
    assert all(x.startswith('stages.0.blocks.1.') for x in initial)
    assert all(x.startswith('stages.2.blocks.1.') for x in unused)


def test_swin(tmp_path, said):
    """Projections, norms and FFNs are taken; stem, merging and LePE are not."""
    official = antioversmoothing.weights('swin_timm')
    torch.save(dict(model=official), tmp_path / 'swin.pth')
    args = SwinTransformer, tmp_path / 'swin.pth', antioversmoothing.ARCHS['swin']
    model = load_backbone(*args, 'elfatt', out_indices=(1,))
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        block, theirs = model.stages[i].blocks[j], f'layers.{i}.blocks.{j}'
        assert block.attn.qkv.bias.equal(official[f'{theirs}.attn.qkv.bias'])
        assert block.norm2.weight.equal(official[f'{theirs}.norm2.weight'])
        assert block.ffn.layers[1].weight.equal(official[f'{theirs}.mlp.fc2.weight'])
    assert model.norm1.bias.equal(official['norm.bias'])
    stem = model.stages[0].embedding.layer
    assert stem[1].weight.equal(official['patch_embed.norm.weight'])
    # a convolution whose kernel doesn't fit keeps its bias too
    assert not stem[0].bias.equal(official['patch_embed.proj.bias'])
    ((level, text),) = said
    assert level == logging.WARNING and 'STARTS from Swin' in text
    initial, unused = text.split('keep their initial values: ')[1].split('; not used: ')
    assert 'stages.0.embedding.layer.0.weight' in initial
    assert 'attn.global_lepe.weight' in initial
    assert 'stages.0.blocks.0.attn.relative_position_bias_table' in unused
    assert 'stages.1.embedding.reduction.weight' in unused
    assert 'not trained with ELFATT and SoftmaxAttention, which 4 blocks' in text
