"""CSWin, and what of it can start an ELFATT model."""

import json
from types import SimpleNamespace

import pytest
import torch
from mmengine.optim import OptimWrapper
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint

from mmlinattn import weights
from mmlinattn.engine.hooks import PretrainedBackboneHook
from mmlinattn.models import CSWinTransformer
from mmlinattn.weights import pretrained
from mmlinattn.weights.families import FAMILIES
from mmlinattn.weights.rows import inside
from mmlinattn.weights.start import find_sources

pytestmark = pytest.mark.modern

KINDS = pytest.mark.parametrize('kind', ['classifier', 'backbone'])
ELFATT = ('--attention', 'elfatt')
PREFIX = 'backbone.'
TAKEN = 'taken as they are'
STRIPES = 'taken and cut otherwise'
INITIAL = 'not in SRC, keep their initial values'
UNUSED = 'official keys that are not used'


@pytest.fixture
def start(cswin, convert, capsys):
    """Starts an ELFATT model; returns its weights and the lists of the report."""

    def run(kind, *options):
        checkpoint = convert(cswin.weights(kind), *ELFATT, *options, family='cswin')
        assert checkpoint['meta']['attention'] == 'elfatt'
        report, lines = {}, []
        for line in capsys.readouterr().out.splitlines():
            if line.startswith('  '):
                lines.append(line.strip())
            else:
                lines = report[line.rpartition(': ')[0]] = []
        return checkpoint['state_dict'], {
            title: report[title] for title in (TAKEN, STRIPES, INITIAL, UNUSED)
        }

    return run


@pytest.fixture
def other_depths(cswin, monkeypatch):
    """An architecture with a block more in stage 1, one less in stage 3."""
    arch = dict(cswin.ARCH, depths=[2, 1, 1, 1])
    monkeypatch.setitem(CSWinTransformer.arch_zoo, 'other', arch)
    return arch


def load_backbone(checkpoint, arch, attention, **options):
    """A backbone as a detector's config loads it."""
    init_cfg = dict(type='Pretrained', checkpoint=str(checkpoint), prefix=PREFIX)
    model = CSWinTransformer(arch, attention, init_cfg=init_cfg, **options)
    model.init_weights()
    return model.eval()


def load_classifier(checkpoint, arch, attention):
    """mmpretrain's classifier, with every key of the checkpoint and no other."""
    classifier = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(
                type='mmlinattn.CSWinTransformer',
                arch=arch,
                attention=attention,
                out_type='avg_featmap',
            ),
            head=dict(type='mmpretrain.LinearClsHead', num_classes=5, in_channels=64),
            data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
        )
    )
    load_checkpoint(classifier, str(checkpoint), strict=True)
    return classifier.eval()


def keys_of(attention, arch):
    return {f'{PREFIX}{key}' for key in CSWinTransformer(arch, attention).state_dict()}


@torch.no_grad()
def test_outputs_of_official_classifier(cswin, convert, relative_error):
    pytest.importorskip('mmpretrain')
    converted = convert(cswin.weights('classifier'), family='cswin')
    assert converted['meta']['attention'] == 'local'
    found = converted['meta']['arch']
    assert found == {key: cswin.ARCH[key] for key in ('embed_dims', 'depths')}
    recorded, x = cswin.outputs('classifier'), cswin.image('classifier')
    last_map = load_backbone(convert.dst, cswin.ARCH, 'local')(x)[-1]
    logits = load_classifier(convert.dst, cswin.ARCH, 'local')(x)
    assert relative_error(last_map.flatten(2).mT, recorded['tokens']) < 1e-5
    assert relative_error(logits, recorded['logits']) < 1e-5


@torch.no_grad()
def test_outputs_of_official_backbone(cswin, convert, relative_error):
    """All four maps, of an image that no stripe divides, norms included."""
    convert(cswin.weights('backbone'), family='cswin')
    maps = load_backbone(convert.dst, cswin.ARCH, 'local')(cswin.image('backbone'))
    recorded = cswin.outputs('backbone')
    errors = [relative_error(x, recorded[f'map{i}']) for i, x in enumerate(maps)]
    assert len(errors) == len(recorded) == 4 and max(errors) < 1e-5, errors


def full_model(cswin):
    """Keys and shapes of the official CSWin-T, converted."""
    shapes = json.loads(cswin.KEYS.read_text())['tiny']
    return weights.convert(
        {key: torch.empty(shape, device='meta') for key, shape in shapes.items()},
        'cswin',
    )


def test_keys_of_full_model(cswin):
    converted = full_model(cswin)
    assert converted.pop('head.fc.weight').shape == (1000, 512)
    assert converted.pop('head.fc.bias').shape == (1000,)
    arch = FAMILIES['cswin'].arch(inside(converted, PREFIX))
    assert arch == dict(embed_dims=64, depths=[1, 2, 21, 1])
    with torch.device('meta'):
        model = CSWinTransformer(
            dict(arch, num_heads=[2, 4, 8, 16]), 'local', out_indices=(3,)
        )
    assert {key: value.shape for key, value in converted.items()} == {
        f'{PREFIX}{key}': value.shape for key, value in model.state_dict().items()
    }


@pytest.mark.parametrize(
    'kind, key',
    [
        ('classifier', 'norm.bias'),
        ('classifier', 'head.weight'),
        ('classifier', 'stage1_conv_embed.2.weight'),
        ('classifier', 'merge3.norm.bias'),
        ('classifier', 'stage3.1.qkv.weight'),
        ('classifier', 'stage2.0.attns.1.get_v.bias'),
        ('backbone', 'norm2.bias'),
        ('backbone', 'stage4.0.attns.0.get_v.weight'),
    ],
)
def test_missing_key(cswin, refused, kind, key):
    official = cswin.weights(kind)
    del official[key]
    line = refused(official, family='cswin')
    assert f'missing 1 ({key}), left over 0' in line


@pytest.mark.parametrize(
    'kind, key',
    [
        ('classifier', 'stage4.0.attns.1.get_v.weight'),
        ('classifier', 'stage1.0.attn.relative_position_bias_table'),
        ('classifier', 'norm1.bias'),
        ('backbone', 'norm.weight'),
    ],
)
@pytest.mark.parametrize('options', [(), ELFATT])
def test_leftover_key(cswin, refused, kind, key, options):
    official = {**cswin.weights(kind), key: torch.zeros(2)}
    line = refused(official, *options, family='cswin')
    assert f'missing 0, left over 1 ({key})' in line


@pytest.mark.parametrize('theirs, family', [('swin', 'cswin'), ('cswin', 'swin')])
def test_other_family(cswin, antioversmoothing, refused, theirs, family):
    weights = dict(
        swin=antioversmoothing.weights('swin_timm'), cswin=cswin.weights('classifier')
    )
    line = refused(weights[theirs], family=family)
    assert f'not the keys of a whole official {family!r} model' in line


def test_released_files_hold_an_average_alone(cswin, convert, capsys):
    official = cswin.weights('classifier')
    converted = convert(dict(state_dict_ema=official), family='cswin')
    assert converted['meta']['ema']
    assert 'a moving average of the weights, all that SRC holds' in (
        capsys.readouterr().out
    )
    expected = weights.convert(official, 'cswin')
    assert converted['state_dict'].keys() == expected.keys()
    assert all(converted['state_dict'][key].equal(expected[key]) for key in expected)


@pytest.mark.parametrize('options', [(), ELFATT])
def test_segmentor_keeps_its_heads(cswin, convert, capsys, options):
    heads = {
        'decode_head.conv_seg.weight': torch.ones(5, 8, 1, 1),
        'decode_head.bottleneck.bn.num_batches_tracked': torch.tensor(3),
        'auxiliary_head.conv_seg.bias': torch.ones(5),
    }
    official = {f'{PREFIX}{k}': v for k, v in cswin.weights('backbone').items()}
    segmentor = dict(state_dict={**official, **heads})
    converted = convert(segmentor, *options, family='cswin')['state_dict']
    assert all(converted[key].equal(value) for key, value in heads.items())
    assert {key for key in converted if not key.startswith(PREFIX)} == heads.keys()
    assert 'with auxiliary_head, decode_head' in capsys.readouterr().out


# ----------------------------------------------------------- start of ELFATT
@KINDS
def test_report_accounts_for_every_key(cswin, start, kind):
    state_dict, report = start(kind)
    lines = [line.split(' <- ') for line in report[TAKEN] + report[STRIPES]]
    ours = [key for key, _ in lines] + report[INITIAL]
    theirs = [key for _, keys in lines for key in keys.split(' + ')]
    heads = {key for key in state_dict if not key.startswith(PREFIX)}
    assert sorted(ours) == sorted(keys_of('elfatt', cswin.ARCH) | heads)
    assert sorted(theirs + report[UNUSED]) == sorted(cswin.weights(kind))
    # a classifier has no norms of earlier maps, which are not written
    fresh = [f'{PREFIX}norm{i}.{x}' for i in range(3) for x in ('weight', 'bias')]
    assert report[INITIAL] == (fresh if kind == 'classifier' else [])
    assert report[UNUSED] == []
    assert state_dict.keys() == set(ours) - set(report[INITIAL])


@KINDS
def test_start_is_what_the_report_says(cswin, start, kind):
    official = cswin.weights(kind)
    state_dict, report = start(kind)
    for line in report[TAKEN] + report[STRIPES]:
        ours, theirs = line.split(' <- ')
        halves = [official[key] for key in theirs.split(' + ')]
        assert state_dict[ours].equal(torch.cat(halves))
    stage3 = f'{PREFIX}stages.2.blocks'
    assert report[STRIPES][-6::2] == [
        f'{stage3}.0.attn.lepe.weight <- stage3.0.attns.0.get_v.weight + '
        'stage3.0.attns.1.get_v.weight',
        f'{stage3}.1.attn.global_lepe.weight <- stage3.1.attns.0.get_v.weight',
        f'{stage3}.1.attn.local_lepe.weight <- stage3.1.attns.1.get_v.weight',
    ]


@torch.no_grad()
def test_equal_where_stripes_see_the_whole_map(cswin, convert):
    """On 7 x 7 tokens, stripes of width 7 and blocks of 49 tokens are the map."""
    official = cswin.weights('backbone')
    convert(official, family='cswin')
    local = load_backbone(convert.dst, cswin.ARCH, 'local')
    convert(official, *ELFATT, '--overwrite', family='cswin')
    elfatt = load_backbone(convert.dst, cswin.ARCH, 'elfatt', block_sizes=49)
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


@pytest.mark.parametrize('options', [(), ELFATT])
def test_loads_into_classifier(cswin, convert, options):
    pytest.importorskip('mmpretrain')
    convert(cswin.weights('classifier'), *options, family='cswin')
    attention = 'elfatt' if options else 'local'
    model = load_classifier(convert.dst, cswin.ARCH, attention)
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 5)


@pytest.mark.parametrize('options', [(), ELFATT])
def test_pretrained_variable(cswin, convert, options):
    official = cswin.weights('classifier')
    convert(official, *options, family='cswin')
    model = CSWinTransformer(cswin.ARCH, 'elfatt' if options else 'local')
    runner = SimpleNamespace(
        optim_wrapper=OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1)),
        cfg=dict(pretrained=str(convert.dst)),
        model=SimpleNamespace(backbone=model),
    )
    PretrainedBackboneHook().before_run(runner)
    model.init_weights()
    assert model.norm3.weight.equal(official['norm.weight'])


@pytest.mark.parametrize('source', ['official', 'converted'])
@KINDS
def test_start_when_loaded(cswin, convert, monkeypatch, kind, source):
    """A backbone does by itself what the command writes."""
    official = cswin.weights(kind)
    expected = convert(official, *ELFATT, family='cswin')['state_dict']
    if source == 'official':
        torch.save(dict(state_dict_ema=official), convert.dst)
    else:
        convert(official, '--overwrite', family='cswin')
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *args: said.append(text))
    model = load_backbone(convert.dst, cswin.ARCH, 'elfatt')
    for key, value in model.state_dict().items():
        assert value.equal(expected.get(f'{PREFIX}{key}', value))
    entries = len(model.state_dict())
    taken = entries if kind == 'backbone' else entries - 6
    assert (
        f'STARTS from CSWin in {convert.dst}: {taken} of {entries} entries' in said[0]
    )
    assert '14 of them cut otherwise' in said[0]
    assert 'not trained with ELFATT and SoftmaxAttention, which 4 blocks' in said[1]


def test_missing_block_starts_as_initialized(cswin, tmp_path, other_depths):
    torch.save(cswin.weights('backbone'), tmp_path / 'official.pth')
    model = load_backbone(tmp_path / 'official.pth', 'other', 'elfatt')
    block = model.stages[0].blocks[1]
    assert 0.01 < block.attn.qkv.weight.std() < 0.03
    assert not block.ffn.layers[1].bias.any()


def test_start_is_no_conversion(cswin, convert):
    """A start of ELFATT is refused by CSWin itself."""
    convert(cswin.weights('classifier'), *ELFATT, family='cswin')
    with pytest.raises(KeyError, match=r'lacks 16 parameters.*lepe\.0'):
        load_backbone(convert.dst, cswin.ARCH, 'local')


def test_other_width_when_loaded(cswin, tmp_path):
    torch.save(cswin.weights('backbone'), tmp_path / 'official.pth')
    with pytest.raises(KeyError, match=r'cannot start.*have other shapes'):
        load_backbone(
            tmp_path / 'official.pth', dict(cswin.ARCH, embed_dims=16), 'elfatt'
        )


def test_other_depths(cswin, start, other_depths):
    """Blocks that only one of the two models has are named, and DST is whole."""
    state_dict, report = start('backbone', '--arch', 'other')
    assert len(report[INITIAL]) == len(report[UNUSED]) == 16
    assert all(key.startswith(f'{PREFIX}stages.0.blocks.1.') for key in report[INITIAL])
    assert all(key.startswith('stage3.1.') for key in report[UNUSED])
    assert state_dict.keys() == keys_of('elfatt', other_depths)


def test_start_is_reproducible(start, other_depths):
    torch.manual_seed(1)
    first, _ = start('backbone', '--arch', 'other')
    torch.manual_seed(2)
    second, _ = start('backbone', '--arch', 'other', '--overwrite')
    weight = first[f'{PREFIX}stages.0.blocks.1.attn.qkv.weight']
    assert 0.01 < weight.std() < 0.03
    assert all(second[key].equal(value) for key, value in first.items())


def test_official_tiny_starts_the_papers_model(cswin):
    """What is left open by CSWin-T's 1, 2, 21, 1 blocks for ELFATT's 2, 4, 18, 1."""
    local = full_model(cswin)
    with torch.device('meta'):
        model = CSWinTransformer('t24181', 'elfatt', out_indices=(3,))
    shapes = {f'{PREFIX}{k}': tuple(v.shape) for k, v in model.state_dict().items()}
    sources = find_sources(shapes, local)
    initial = [key for key, names in sources.items() if not names]
    new_blocks = [
        f'{PREFIX}stages.{block}.'
        for block in ('0.blocks.1', '1.blocks.2', '1.blocks.3')
    ]
    assert initial == [key for key in shapes if key.startswith(tuple(new_blocks))]
    used = {name for names in sources.values() for name in names}
    dropped = [f'{PREFIX}stages.2.blocks.{i}.' for i in (18, 19, 20)]
    assert local.keys() - used - {'head.fc.weight', 'head.fc.bias'} == {
        key for key in local if key.startswith(tuple(dropped))
    }
    for key, names in sources.items():
        if names:
            joined = torch.cat([local[name] for name in names])
            assert joined.shape == shapes[key]


def test_other_width(cswin, refused, monkeypatch):
    arch = dict(cswin.ARCH, embed_dims=16)
    monkeypatch.setitem(CSWinTransformer.arch_zoo, 'wide', arch)
    line = refused(cswin.weights('backbone'), *ELFATT, '--arch', 'wide', family='cswin')
    assert "embed_dims=8 cannot start arch='wide', which has 16" in line


def test_unknown_arch(cswin, refused):
    line = refused(cswin.weights('backbone'), *ELFATT, '--arch', 'x', family='cswin')
    names = "['b36292', 'base', 'large', 'small', 't24181', 'tiny']"
    assert f"one of {names}, got 'x'" in line
