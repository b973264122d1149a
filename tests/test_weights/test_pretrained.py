"""Backbones that start from files which other libraries made."""

import logging
import sys
from itertools import product

import antioversmoothing_fixture as antioversmoothing
import pytest
import safetensors.torch
import soft_fixture as soft
import timm
import torch
import variants_fixture as variants
from loading import load_backbone as load
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint, save_checkpoint

from mmlinattn.models import (
    SOFT,
    CaiT,
    CSWinTransformer,
    SOFTPlusPlus,
    SwinTransformer,
    VisionTransformer,
)
from mmlinattn.weights import add_file_scheme, fit, load_pretrained
from mmlinattn.weights.families import FAMILIES

SWIN = dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 4])
DEIT = dict(embed_dims=64, num_layers=3, num_heads=2)
SCALES = dict(attn_scale=True, feat_scale=True)


def randomize(model):
    """Sets values that no initialization has."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.eval()
    return model


# ------------------------------------------------------- files of the libraries
OF_MM = dict(
    mmpretrain=dict(arch=SWIN, out_indices=(0, 1, 2, 3)),
    mmdet=dict(SWIN, window_size=7),
    mmseg=dict(SWIN, window_size=7),
)


@pytest.mark.parametrize('library', OF_MM)
@torch.no_grad()
def test_file_of_mm(tmp_path, said, relative_error, library):
    """Of a whole model; the maps are equal, and vectors of a technique as at start."""
    cfg = dict(type=f'{library}.SwinTransformer', **OF_MM[library])
    model = randomize(MODELS.build(cfg))
    path = tmp_path / f'{library}.pth'
    state_dict = {f'backbone.{key}': x for key, x in model.state_dict().items()}
    state_dict['neck.fpn_convs.0.conv.bias'] = torch.zeros(1)
    save_checkpoint(dict(meta=dict(epoch=1), state_dict=state_dict), str(path))
    is_dense = library != 'mmpretrain'
    ours = load(SwinTransformer, path, arch=SWIN, pad_small_map=is_dense, **SCALES)
    for size in ((224, 224), (230, 311)):
        x = torch.randn(2, 3, *size)
        errors = [relative_error(*pair) for pair in zip(ours(x), model(x))]
        assert len(errors) == 4 and max(errors) < 1e-5, errors
    ((level, text),) = said
    assert level == logging.INFO and f'loaded from Swin in {path}' in text
    vectors = [key for key in ours.state_dict() if key.endswith(('omega', '_scale'))]
    assert len(vectors) == 3 * 8
    assert 'initial values: 24' in text and 'not used: 1 (neck (1 entries))' in text
    assert not any(ours.get_parameter(key).any() for key in vectors)


@pytest.mark.parametrize('family', ['swin', 'deit'])
@torch.no_grad()
def test_file_of_timm(tmp_path, relative_error, family):
    if family == 'swin':
        sizes = dict(depths=SWIN['depths'], num_heads=SWIN['num_heads'])
        model = timm.models.SwinTransformer(embed_dim=8, **sizes)
        options = dict(arch=SWIN, pad_small_map=False)
        model_class, side = SwinTransformer, 224
    else:
        sizes = dict(embed_dim=64, depth=3, num_heads=2, num_classes=5)
        model = timm.models.VisionTransformer(img_size=96, **sizes)
        model_class, options, side = VisionTransformer, dict(arch=DEIT, img_size=96), 96
    path = tmp_path / 'timm.safetensors'
    safetensors.torch.save_model(randomize(model), str(path))
    ours = load(model_class, path, **options, **SCALES)
    x = torch.randn(1, 3, side, side)
    theirs = model.forward_features(x)
    theirs = theirs.flatten(1, 2) if family == 'swin' else theirs[:, 1:]
    assert relative_error(ours(x)[-1].flatten(2).mT, theirs) < 1e-5


def test_timm_by_name(tmp_path, said, monkeypatch):
    """A model that timm knows, with weights where its config says."""
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
# those of DataParallel, torch.compile and Lightning
PROGRAMS = '_orig_mod.', 'module._orig_mod.', '_orig_mod.module.'
PROGRAMS += 'model.', 'model.module.'


@pytest.mark.parametrize(
    'prefix, option',
    [
        *(('', x) for x in (None, 'backbone.', 'backbone')),
        *product(PROGRAMS, (None, 'model')),
    ],
)
def test_official_file_and_any_prefix(tmp_path, said, prefix, option):
    official = soft.weights()
    path = tmp_path / 'soft_tiny.pth.tar'
    state_dict = {f'{prefix}{key}': value for key, value in official.items()}
    average = {key: value + 1 for key, value in state_dict.items()}
    torch.save(dict(state_dict=state_dict, state_dict_ema=average, epoch=3), path)
    init_cfg = dict(type='Pretrained', checkpoint=path.as_uri(), prefix=option)
    model = SOFT(soft.ARCH, init_cfg=init_cfg)
    model.init_weights()
    assert model.norm3.bias.equal(official['norm.bias'])
    assert model.is_init and model.init_cfg == init_cfg
    assert 'from SOFT in file:///' in said[0][1]


def test_file_of_a_deeper_model(tmp_path, said):
    deeper = SwinTransformer(arch=dict(SWIN, depths=[2, 2, 4, 2]), attention='local')
    torch.save(deeper.state_dict(), tmp_path / 'a.pth')
    load_pretrained(
        SwinTransformer(arch=SWIN, attention='local'), str(tmp_path / 'a.pth')
    )
    ((level, text),) = said
    assert level == logging.WARNING and text.endswith('of a deeper model')


@pytest.mark.parametrize(
    'channels, text',
    [(1, 'is summed for one channel'), (6, 'for 6 channels, times 3/6')],
)
@torch.no_grad()
def test_other_numbers_of_channels(tmp_path, said, relative_error, channels, text):
    """A gray image gives what it gives in RGB, and so do six equal channels."""
    rgb = randomize(SwinTransformer(arch=SWIN))
    path = tmp_path / 'rgb.pth'
    save_checkpoint(dict(state_dict=rgb.state_dict()), str(path))
    model = load(SwinTransformer, path, arch=SWIN, in_channels=channels).eval()
    gray = torch.randn(1, 1, 64, 64)
    maps = zip(
        model(gray.expand(-1, channels, -1, -1)), rgb(gray.expand(-1, 3, -1, -1))
    )
    assert all(relative_error(*pair) < 1e-5 for pair in maps)
    ((level, line),) = said
    assert level == logging.WARNING and text in line


def test_other_models(tmp_path):
    one, path = torch.zeros(1), tmp_path / 'other.pth'
    deit, swin = map(antioversmoothing.weights, ('deit_timm', 'swin_timm'))
    half = {key: x for key, x in soft.weights().items() if key != 'norm.bias'}
    for weights, message in (
        (
            {'conv1.weight': one},
            r'it has 1 \(conv1.weight\), not recognized.*mmlinattn ',
        ),
        ({'conv1.weight': one}, r'and of .*; SOFT \(.*mim run mmlinattn convert'),
        ({'backbone.patch_embed.layer.0.weight': one}, 'weights of mmlinattn'),
        (deit, r'this SOFT: lacks \d+ parameters.*weights of DeiT'),
        (half, r"other.pth'.*missing 1 \(norm.bias\)"),
    ):
        torch.save(weights, path)
        with pytest.raises((KeyError, ValueError), match=message):
            load(SOFT, path, arch=soft.ARCH)
    torch.save(swin, path)
    for change, message in (
        (dict(embed_dims=16), r'shapes differ, such as .* there, \(16.* here'),
        (dict(depths=[3, 2]), r'lacks 13 parameters.*blocks\.2'),
    ):
        with pytest.raises(KeyError, match=message):
            load(
                SwinTransformer,
                path,
                arch={**antioversmoothing.ARCHS['swin'], **change},
            )


@pytest.mark.parametrize('img_size', (64, 128))
def test_tables_of_another_size(tmp_path, said, img_size):
    """They are resized twice, which changes features, unless img_size is theirs."""
    arch = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
    options = dict(arch=arch, sampling_ratios=[4, 2], kernel_sizes=[3, 3])
    options.update(out_indices=(1,))
    source = SOFTPlusPlus(**options, img_size=64).eval()
    for name, param in source.named_parameters():
        if name.endswith('pos_embed.table'):
            param.data.normal_()
    path = tmp_path / 'trained.pth'
    torch.save(dict(state_dict=source.state_dict()), path)
    model = SOFTPlusPlus(**options, img_size=img_size).eval()
    load_pretrained(model, str(path))
    images = torch.randn(1, 3, 64, 96)
    same = torch.equal(model(images)[0], source(images)[0])
    assert same == (img_size == 64) == ('are resized once' not in said[-1][1])


def test_maps_leave_class_layers_unused(tmp_path, said):
    torch.save(antioversmoothing.weights('cait_attnscale'), tmp_path / 'cait.pth')
    options = dict(arch=antioversmoothing.ARCHS['cait'], patch_size=8)
    small = load(CaiT, tmp_path / 'cait.pth', img_size=32, attn_scale=True, **options)
    assert (
        ' (class_layers.cls_token, ' in said[0][1]
        and 'initial values: 0; ' in said[0][1]
    )
    # the position table of 32 pixels is resized
    large = load(CaiT, tmp_path / 'cait.pth', img_size=48, attn_scale=True, **options)
    assert large.pos_embed.table.equal(small.pos_embed((6, 6)))


def test_same_keys_but_another_attention(tmp_path, said):
    torch.save(antioversmoothing.weights('deit_timm'), tmp_path / 'deit.pth')
    load(
        VisionTransformer,
        tmp_path / 'deit.pth',
        arch=antioversmoothing.ARCHS['deit'],
        img_size=32,
        patch_size=8,
        attention=dict(type='FocusedLinearAttention'),
    )
    assert logging.WARNING in [level for level, _ in said]
    assert 'not trained with FocusedLinearAttention, which 2 blocks' in said[-1][1]


# ------------------------------------------------------------ load_from of mm
def classifier(**options):
    """mmpretrain's classifier with our Swin and random weights."""
    cfg = dict(
        type='mmpretrain.ImageClassifier',
        backbone=dict(type='mmlinattn.SwinTransformer', out_indices=(3,), **options),
        neck=dict(type='mmpretrain.GlobalAveragePooling'),
        head=dict(type='mmpretrain.LinearClsHead', num_classes=5, in_channels=64),
        data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
    )
    return randomize(MODELS.build(cfg))


def test_load_from_an_official_classifier(tmp_path, few_agents):
    """Its backbone makes a whole model of it, whatever program loads it."""
    official = variants.weights('agent_swin')
    path = tmp_path / 'agent.pth'
    torch.save(dict(model=official, epoch=3), path)
    options = dict(arch=variants.ARCHS['agent_swin'], attention=few_agents)
    add_file_scheme()
    for address in (path.as_uri(), str(path)):
        model = classifier(**options)
        load_checkpoint(model, address, strict=True)
        assert model.head.fc.bias.equal(official['head.bias'])
        bias = model.backbone.stages[0].blocks[1].attn.agent_bias
        assert bias.rows.equal(official['layers.0.blocks.1.attn.ah_bias'][0])
    assert fit(model, dict(model=official)).whole
    assert fit(classifier(**options), official).whole
    with pytest.raises(ValueError, match='no weights'):
        fit(model.backbone, dict(model=official))


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'name',
    [
        *('flatten_swin', 'flatten_cswin', 'agent_cswin'),
        *('inline_swin', 'inline_cswin', 'polaformer_swin'),
    ],
)
def test_file_of_a_variant(tmp_path, said, name):
    """It is the whole model of the paper, at another size and in half precision too."""
    family, _, kind = name.partition('_')
    path = tmp_path / 'max_acc.pth'
    weights = variants.weights(name)
    torch.save(dict(model=weights, state_dict_ema=weights), path)
    model_class = CSWinTransformer if kind == 'cswin' else SwinTransformer
    arch = variants.ARCHS[name]
    options = dict(arch=arch, attention=family)
    half = {key: x.half() if x.is_floating_point() else x for key, x in weights.items()}
    torch.save(half, tmp_path / 'half.pth')
    for file, img_size in ((path, 224), (path, 256), (tmp_path / 'half.pth', 256)):
        load(model_class, file, img_size=img_size, **options)
        assert f'from {FAMILIES[family].title} in' in said[0][1]
        assert 'STARTS' not in said[0][1] and len(said) == 1
        said.clear()
    load(model_class, path, arch=arch)
    assert 'STARTS' in said[0][1] and 'not trained with' in said[0][1]
