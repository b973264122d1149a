"""Backbones that start from files which other libraries made."""

import logging
import sys

import pytest
import torch
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint, save_checkpoint

from mmlinattn.models import SOFT, SwinTransformer, VisionTransformer
from mmlinattn.weights import pretrained

pytestmark = pytest.mark.modern

SWIN = dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 4])
SWIN_SMALL_WINDOWS = dict(SWIN, depths=[2, 2, 1, 1])
DEIT = dict(embed_dims=64, num_layers=3, num_heads=2)
SCALES = dict(attn_scale=True, feat_scale=True)


@pytest.fixture
def said(monkeypatch):
    """What was logged, as pairs of a level and a text."""
    lines = []

    def keep(text, logger=None, level=logging.INFO):
        lines.append((level, text))

    monkeypatch.setattr(pretrained, 'print_log', keep)
    return lines


def randomize(model):
    """Other values than any initialization has."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.eval()
    return model


def load(model_class, checkpoint, **options):
    """A backbone as a detector's config loads it."""
    model = model_class(
        init_cfg=dict(type='Pretrained', checkpoint=str(checkpoint)), **options
    )
    model.init_weights()
    return model.eval()


def mm_classifier(arch, **options):
    """mmpretrain's Swin classifier with random weights."""
    backbone = dict(type='mmpretrain.SwinTransformer', arch=arch, **options)
    return randomize(
        MODELS.build(
            dict(
                type='mmpretrain.ImageClassifier',
                backbone=backbone,
                neck=dict(type='mmpretrain.GlobalAveragePooling'),
                head=dict(
                    type='mmpretrain.LinearClsHead', num_classes=5, in_channels=64
                ),
                data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
            )
        )
    )


# ------------------------------------------------------- files of the libraries
@pytest.mark.parametrize('scales', [{}, SCALES])
@torch.no_grad()
def test_file_of_mmpretrain(tmp_path, said, relative_error, scales):
    pytest.importorskip('mmpretrain')
    model = mm_classifier(SWIN, out_indices=(0, 1, 2, 3))
    path = tmp_path / 'mmpretrain.pth'
    save_checkpoint(dict(meta=dict(epoch=1), state_dict=model.state_dict()), str(path))
    ours = load(SwinTransformer, path, arch=SWIN, **scales)
    x = torch.randn(1, 3, 224, 224)
    errors = [relative_error(*pair) for pair in zip(ours(x), model.backbone(x))]
    assert len(errors) == 4 and max(errors) < 1e-5, errors
    ((level, text),) = said
    assert level == logging.INFO
    assert (
        f'entries from Swin in {path}' in text
        and 'not used: 1 (head (2 entries))' in text
    )
    assert text.endswith('start as fresh norms: 0')
    vectors = [key for key in ours.state_dict() if key.endswith(('omega', '_scale'))]
    assert len(vectors) == (3 * 8 if scales else 0)
    assert f'start at zero: {len(vectors)}' in text
    assert not any(ours.get_parameter(key).any() for key in vectors)


@pytest.mark.parametrize('library', ['mmdet', 'mmseg'])
@torch.no_grad()
def test_file_of_mmdet_and_mmseg(tmp_path, said, relative_error, library):
    """A whole detector or segmentor; all maps have norms."""
    pytest.importorskip(library)
    options = {k: SWIN[k] for k in ('embed_dims', 'depths', 'num_heads')}
    model = randomize(
        MODELS.build(dict(type=f'{library}.SwinTransformer', **options, window_size=7))
    )
    path = tmp_path / f'{library}.pth'
    state_dict = {f'backbone.{key}': x for key, x in model.state_dict().items()}
    state_dict['neck.fpn_convs.0.conv.bias'] = torch.zeros(1)
    torch.save(dict(meta=dict(epoch=1), state_dict=state_dict, optimizer={}), path)
    ours = load(SwinTransformer, path, arch=SWIN)
    # these two shift windows on maps that are no larger than one
    x = torch.randn(1, 3, 256, 288)
    errors = [relative_error(*pair) for pair in zip(ours(x), model(x))]
    assert len(errors) == 4 and max(errors) < 1e-5, errors
    assert 'not used: 1 (neck (1 entries)); start at zero: 0' in said[0][1]


def timm_model(family):
    """timm's own model with random weights, and ours for it."""
    timm = pytest.importorskip('timm')
    if family == 'swin':
        model = timm.models.SwinTransformer(
            embed_dim=8, depths=SWIN['depths'], num_heads=SWIN['num_heads']
        )
        return model, SwinTransformer, dict(arch=SWIN)
    vit = timm.models.VisionTransformer(
        img_size=96, embed_dim=64, depth=3, num_heads=2, num_classes=5
    )
    return vit, VisionTransformer, dict(arch=DEIT, img_size=96)


@pytest.mark.parametrize('family', ['swin', 'deit'])
@torch.no_grad()
def test_file_of_timm(tmp_path, said, relative_error, family):
    safetensors = pytest.importorskip('safetensors.torch')
    model, model_class, options = timm_model(family)
    randomize(model)
    path = tmp_path / 'timm.safetensors'
    safetensors.save_model(model, str(path))
    ours = load(model_class, path, **options, **SCALES)
    side = 224 if family == 'swin' else 96
    x = torch.randn(1, 3, side, side)
    theirs = model.forward_features(x)
    theirs = theirs.flatten(1, 2) if family == 'swin' else theirs[:, 1:]
    assert relative_error(ours(x)[-1].flatten(2).mT, theirs) < 1e-5
    number = 3 * (8 if family == 'swin' else 3)
    assert f'start at zero: {number} (' in said[0][1]


def test_timm_by_name(tmp_path, said, monkeypatch):
    """A model that timm knows, with weights where its config says."""
    timm = pytest.importorskip('timm')
    options = dict(embed_dim=8, depths=SWIN['depths'], num_heads=SWIN['num_heads'])
    path = tmp_path / 'timm.pth'
    weights = randomize(timm.models.SwinTransformer(**options)).state_dict()
    torch.save(weights, path)

    cfgs = timm.models.generate_default_cfgs({'swin_miniature': dict(file=str(path))})
    # where timm looks for the configs of a module's models
    monkeypatch.setattr(sys.modules[__name__], 'default_cfgs', cfgs, raising=False)

    @timm.models.register_model
    def swin_miniature(pretrained=False, **kwargs):
        return timm.models.build_model_with_cfg(
            timm.models.SwinTransformer, 'swin_miniature', pretrained, **options
        )

    ours = load(SwinTransformer, 'timm://swin_miniature', arch=SWIN)
    assert ours.norm3.weight.equal(weights['norm.weight'])
    assert 'Swin in timm://swin_miniature' in said[0][1]


# ------------------------------------------------------------- official files
@pytest.mark.parametrize('prefix', [None, '', 'backbone.', 'backbone'])
def test_official_file_and_any_prefix(soft, tmp_path, said, prefix):
    official = soft.weights()
    path = tmp_path / 'soft_tiny.pth.tar'
    average = {key: value + 1 for key, value in official.items()}
    torch.save(dict(state_dict=official, state_dict_ema=average, epoch=3), path)
    init_cfg = dict(type='Pretrained', checkpoint=path.as_uri(), prefix=prefix)
    model = SOFT(soft.ARCH, init_cfg=init_cfg)
    model.init_weights()
    assert model.norm3.bias.equal(official['norm.bias'])
    assert model.is_init and model.init_cfg == init_cfg
    assert 'from SOFT in file:///' in said[0][1]
    assert (
        'holds a moving average of the weights too, under state_dict_ema'
        in (said[1][1])
    )


def test_every_key_is_in_the_log_file(soft, tmp_path, monkeypatch):
    logger = logging.getLogger('account')
    logger.addHandler(logging.FileHandler(tmp_path / 'run.log'))
    monkeypatch.setattr(
        pretrained.MMLogger, 'get_current_instance', classmethod(lambda cls: logger)
    )
    torch.save(soft.weights(), tmp_path / 'soft.pth')
    model = load(SOFT, tmp_path / 'soft.pth', arch=soft.ARCH)
    lines = (tmp_path / 'run.log').read_text().splitlines()
    taken = [line.split(' <- ')[0] for line in lines if ' <- ' in line]
    assert taken == list(model.state_dict())
    assert 'stages.0.blocks.0.attn.q.bias <- block1.0.att.mha.W_q.bias' in lines
    assert lines[len(taken) :] == ['head.weight is not used', 'head.bias is not used']


@pytest.mark.parametrize(
    'state_dict, message',
    [
        (
            {'conv1.weight': torch.zeros(1), 'fc.bias': torch.zeros(1)},
            r'lacks \d+ parameters of this SOFT.*it has 2 \(conv1.weight, fc.bias\), '
            r'not recognized.*mmlinattn and of SOFT \(.*mim run mmlinattn convert_off',
        ),
        (
            {'backbone.patch_embed.layer.0.weight': torch.zeros(1)},
            'weights of another model of mmlinattn',
        ),
    ],
)
def test_not_recognized(tmp_path, state_dict, message):
    torch.save(state_dict, tmp_path / 'other.pth')
    with pytest.raises(KeyError, match=message):
        load(SOFT, tmp_path / 'other.pth')


def test_other_family(soft, antioversmoothing, tmp_path):
    torch.save(antioversmoothing.weights('deit_timm'), tmp_path / 'deit.pth')
    with pytest.raises(KeyError, match='lacks .* of this SOFT.*weights of DeiT'):
        load(SOFT, tmp_path / 'deit.pth', arch=soft.ARCH)


def test_other_sizes(antioversmoothing, tmp_path):
    torch.save(antioversmoothing.weights('swin_timm'), tmp_path / 'swin.pth')
    arch = antioversmoothing.ARCHS['swin']
    with pytest.raises(KeyError, match=r'does not fit.*\d+ shapes differ, such as'):
        load(SwinTransformer, tmp_path / 'swin.pth', arch=dict(arch, embed_dims=16))
    with pytest.raises(KeyError, match=r'lacks 13 parameters.*blocks\.2'):
        load(SwinTransformer, tmp_path / 'swin.pth', arch=dict(arch, depths=[3, 2]))


def test_half_of_a_model(soft, tmp_path):
    official = soft.weights()
    del official['norm.bias']
    torch.save(official, tmp_path / 'half.pth')
    with pytest.raises(ValueError, match=r"half.pth'.*missing 1 \(norm.bias\)"):
        load(SOFT, tmp_path / 'half.pth', arch=soft.ARCH)


# ----------------------------------------------------------- other attentions
def test_swin_starts_elfatt(antioversmoothing, tmp_path, said):
    """Projections, norms and FFNs are taken; stem, merging and LePE are not."""
    official = antioversmoothing.weights('swin_timm')
    torch.save(dict(model=official), tmp_path / 'swin.pth')
    arch = antioversmoothing.ARCHS['swin']
    model = load(SwinTransformer, tmp_path / 'swin.pth', arch=arch, attention='elfatt')
    for i in (0, 1):
        for j in (0, 1):
            block, theirs = model.stages[i].blocks[j], f'layers.{i}.blocks.{j}'
            assert block.attn.qkv.bias.equal(official[f'{theirs}.attn.qkv.bias'])
            assert block.norm2.weight.equal(official[f'{theirs}.norm2.weight'])
            assert block.ffn.layers[1].weight.equal(
                official[f'{theirs}.mlp.fc2.weight']
            )
    assert model.norm1.bias.equal(official['norm.bias'])
    stem = model.stages[0].embedding.layer
    assert stem[1].weight.equal(official['patch_embed.norm.weight'])
    # a convolution whose kernel doesn't fit keeps its bias too
    assert not stem[0].bias.equal(official['patch_embed.proj.bias'])
    (level, text), (_, attentions) = said
    assert level == logging.WARNING and 'STARTS from Swin' in text
    initial, unused = text.split('keep their initial values: ')[1].split('; not used: ')
    for key in ('stages.0.embedding.layer.0.weight', 'attn.global_lepe.weight'):
        assert key in initial
    assert "layers.0.blocks.0.attn.relative_position_bias_table'" in unused
    assert 'layers.1.downsample.reduction.weight' in unused
    assert 'norm1' not in initial.replace('embedding', '')
    assert 'not trained with ELFATT and SoftmaxAttention, which 4 blocks' in attentions


def test_swin_start_is_what_the_command_writes(antioversmoothing, convert, tmp_path):
    official = antioversmoothing.weights('swin_timm')
    converted = convert(official, '--attention', 'elfatt', family='swin')['state_dict']
    torch.save(official, tmp_path / 'swin.pth')
    arch = antioversmoothing.ARCHS['swin']
    options = dict(arch=arch, attention='elfatt', out_indices=(1,))
    loaded = load(SwinTransformer, tmp_path / 'swin.pth', **options).state_dict()
    written = load(SwinTransformer, convert.dst, **options).state_dict()
    same = [key for key in loaded if loaded[key].equal(written[key])]
    assert converted.keys() == {'head.fc.weight', 'head.fc.bias'} | {
        f'backbone.{key}' for key in loaded
    }
    assert 'stages.1.blocks.1.attn.proj.weight' in same
    assert 'stages.0.embedding.layer.0.weight' not in same


def test_same_keys_but_another_attention(antioversmoothing, tmp_path, said):
    torch.save(antioversmoothing.weights('deit_timm'), tmp_path / 'deit.pth')
    load(
        VisionTransformer,
        tmp_path / 'deit.pth',
        arch=antioversmoothing.ARCHS['deit'],
        img_size=32,
        patch_size=8,
        attention=dict(type='FocusedLinearAttention'),
    )
    levels = [level for level, _ in said]
    assert logging.WARNING in levels
    assert 'not trained with FocusedLinearAttention, which 2 blocks' in said[-1][1]


# ------------------------------------------------------------ load_from of mm
def our_classifier(**backbone):
    return MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(
                type='mmlinattn.SwinTransformer', out_type='avg_featmap', **backbone
            ),
            head=dict(type='mmpretrain.LinearClsHead', num_classes=5, in_channels=64),
            data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
        )
    )


@torch.no_grad()
def test_load_from_a_model_of_mmpretrain(tmp_path, relative_error):
    """Its prefix is ours: a whole model loads, and is the same function."""
    pytest.importorskip('mmpretrain')
    theirs = mm_classifier(SWIN)
    save_checkpoint(dict(state_dict=theirs.state_dict()), str(tmp_path / 'mm.pth'))
    ours = our_classifier(arch=SWIN).eval()
    load_checkpoint(ours, str(tmp_path / 'mm.pth'), strict=True)
    x = torch.randn(1, 3, 224, 224)
    assert relative_error(ours(x), theirs(x)) < 1e-5
    ours.load_state_dict(theirs.state_dict())


def test_load_from_an_official_file(antioversmoothing, tmp_path):
    pytest.importorskip('mmpretrain')
    official = antioversmoothing.weights('swin_timm')
    torch.save(official, tmp_path / 'swin.pth')
    arch = antioversmoothing.ARCHS['swin']
    model = our_classifier(arch=arch)
    message = (
        'weights of Swin under the names of .*pretrained=CHECKPOINT.*'
        'mim run mmlinattn convert_official swin SRC DST'
    )
    with pytest.raises(ValueError, match=message):
        load_checkpoint(model, str(tmp_path / 'swin.pth'))
    with pytest.raises(ValueError, match=message):
        model.load_state_dict(official, strict=False)


def test_load_from_anything_else_is_left_to_mm(tmp_path):
    pytest.importorskip('mmpretrain')
    model = our_classifier(arch=SWIN)
    head = {'head.fc.bias': torch.ones(5)}
    model.load_state_dict(head, strict=False)
    assert model.head.fc.bias.equal(torch.ones(5))
    with pytest.raises(RuntimeError, match='Unexpected key'):
        model.load_state_dict({'conv1.weight': torch.ones(1)})
    state_dict = model.state_dict()
    model.load_state_dict(state_dict)
    bare = SwinTransformer(SWIN, out_indices=(3,))
    bare.load_state_dict(model.backbone.state_dict())


def test_backbone_takes_official_names(antioversmoothing):
    official = antioversmoothing.weights('swin_timm')
    arch = antioversmoothing.ARCHS['swin']
    model = SwinTransformer(arch, out_indices=(1,))
    model.load_state_dict({k: x for k, x in official.items() if 'head' not in k})
    assert model.norm1.bias.equal(official['norm.bias'])
