"""DeiT, CaiT and Swin, with and without AttnScale and FeatScale."""

import pytest
import torch
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint

from mmlinattn import weights
from mmlinattn.weights import pretrained

pytestmark = pytest.mark.modern

TYPES = dict(deit='VisionTransformer', cait='CaiT', swin='SwinTransformer')
OUT_TYPES = dict(deit='cls_token', cait='cls_token', swin='avg_featmap')
SCALES = dict(attnscale='attn_scale', featscale='feat_scale')
FAMILIES = pytest.mark.parametrize('family', TYPES)


@pytest.fixture
def config(antioversmoothing):
    """Config of the recorded backbone of a family."""

    def make(family, **options):
        cfg = dict(
            type=f'mmlinattn.{TYPES[family]}', arch=antioversmoothing.ARCHS[family]
        )
        if family != 'swin':
            cfg.update(
                img_size=antioversmoothing.IMG_SIZES[family],
                patch_size=antioversmoothing.PATCH_SIZE,
            )
        return {**cfg, **options}

    return make


def load_backbone(cfg, checkpoint, **options):
    """A backbone as a detector loads it."""
    init_cfg = dict(type='Pretrained', checkpoint=str(checkpoint), prefix='backbone.')
    model = MODELS.build({**cfg, **options, 'init_cfg': init_cfg})
    model.init_weights()
    return model.eval()


def load_classifier(cfg, checkpoint, out_type, num_classes):
    backbone = MODELS.build({**cfg, 'out_type': out_type})
    classifier = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=backbone,
            head=dict(
                type='mmpretrain.LinearClsHead',
                num_classes=num_classes,
                in_channels=backbone.feature_channels[-1],
            ),
            data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
        )
    )
    load_checkpoint(classifier, str(checkpoint), strict=True)
    return classifier.eval()


def watch(module, seen, name):
    """Keeps what a module returns, as tokens (B, N, C)."""

    def keep(module, args, out):
        seen[name] = out if out.dim() == 3 else out.flatten(2).mT

    module.register_forward_hook(keep)


@pytest.fixture
def check_outputs(relative_error):
    """Compares a converted file with what official code made of its weights."""

    @torch.no_grad()
    def check(checkpoint, family, cfg, image, recorded):
        logits, tokens = recorded['logits'], recorded['tokens']
        classifier = load_classifier(cfg, checkpoint, OUT_TYPES[family], logits.size(1))
        model = classifier.backbone
        seen = {}
        watch(getattr(model, f'norm{model.num_stages - 1}'), seen, 'tokens')
        if family == 'swin':
            watch(model.stages[1].embedding, seen, 'merged')
        seen['logits'] = classifier(image)
        assert seen.keys() == recorded.keys()
        errors = {
            key: relative_error(value, recorded[key]) for key, value in seen.items()
        }
        patches = load_backbone(cfg, checkpoint)(image)[-1].flatten(2).mT
        errors['map'] = relative_error(patches, tokens[:, -patches.size(1) :])
        assert max(errors.values()) < 1e-5, errors

    return check


@pytest.mark.parametrize('kind', [*SCALES, 'timm'])
@FAMILIES
def test_outputs_of_official_code(
    antioversmoothing, convert, config, check_outputs, family, kind
):
    pytest.importorskip('mmpretrain')
    name = f'{family}_{kind}'
    converted = convert(antioversmoothing.weights(name), family=family)
    scales = [SCALES[kind]] if kind in SCALES else []
    arch = antioversmoothing.ARCHS[family]
    assert converted['meta']['scales'] == scales
    found = converted['meta']['arch']
    assert found == {key: arch[key] for key in found}
    check_outputs(
        convert.dst,
        family,
        config(family, **dict.fromkeys(scales, True)),
        antioversmoothing.image(family),
        antioversmoothing.outputs(name),
    )


@pytest.mark.parametrize('family, factor', [('deit', 2), ('cait', 1), ('swin', 1)])
def test_feat_scale_of_deit_counts_twice(antioversmoothing, family, factor):
    official = antioversmoothing.weights(f'{family}_featscale')
    converted = weights.convert(official, family)
    vectors = [key for key in official if key.endswith(('.lamb1', '.lamb2'))]
    assert len(vectors) == 2 * (4 if family == 'swin' else 2)
    for key in vectors:
        ours = 'backbone.' + key.replace('layers.', 'stages.').replace(
            'lamb1', 'feat_scale.dc_scale'
        ).replace('lamb2', 'feat_scale.hc_scale')
        assert converted[ours].equal(factor * official[key])


@FAMILIES
def test_plain_checkpoint_starts_fine_tuning(
    antioversmoothing, convert, config, monkeypatch, capsys, family
):
    """The new vectors are zero, named as such, and change nothing."""
    converted = convert(antioversmoothing.weights(f'{family}_timm'), family=family)
    assert converted['meta']['scales'] == []
    assert 'scaling vectors: none, they would start at zero' in capsys.readouterr().out
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *args: said.append(text))
    cfg = config(family, out_type=OUT_TYPES[family])
    plain = load_backbone(cfg, convert.dst)
    scaled = load_backbone(cfg, convert.dst, attn_scale=True, feat_scale=True)
    vectors = scaled.state_dict().keys() - plain.state_dict().keys()
    blocks = [key for key in vectors if key.endswith('.attn.omega')]
    assert len(blocks) == (4 if family == 'swin' else 2)
    assert len(vectors) == 3 * len(blocks)
    assert not any(scaled.get_parameter(key).any() for key in vectors)
    assert 'not used: 1 (head (2 entries)); start at zero: 0; ' in said[0]
    assert f'start at zero: {len(vectors)} (' in said[1]
    assert said[1].endswith('start as fresh norms: 0')
    x = antioversmoothing.image(family)
    torch.testing.assert_close(scaled(x), plain(x))


def test_maps_leave_class_layers_unused(
    antioversmoothing, convert, config, monkeypatch
):
    convert(antioversmoothing.weights('cait_attnscale'), family='cait')
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *args: said.append(text))
    load_backbone(config('cait', attn_scale=True), convert.dst)
    assert ' (backbone.class_layers.cls_token, ' in said[0]
    assert 'start at zero: 0; ' in said[0]


@pytest.mark.parametrize('family', ['deit', 'cait'])
def test_position_table_is_resized(antioversmoothing, convert, config, family):
    """A checkpoint of 32 pixels in a model made for 48."""
    convert(antioversmoothing.weights(f'{family}_timm'), family=family)
    small = load_backbone(config(family), convert.dst)
    large = load_backbone(config(family, img_size=48), convert.dst)
    assert large.pos_embed.table.equal(small.pos_embed((6, 6)))


def test_buffers_are_left_out_by_name(antioversmoothing, convert, capsys):
    official = antioversmoothing.weights('swin_attnscale')
    converted = convert(official, family='swin')['state_dict']
    out = capsys.readouterr().out
    assert 'the model computes itself: 6 (' in out and '.attn_mask' in out
    assert f'all {len(official) - 6} official keys to {len(converted)} of ours' in out
    assert not any('mask' in key or 'index' in key for key in converted)


def test_swin_of_either_timm(antioversmoothing):
    """timm moved the mergings and the head; the weights stay the same."""
    new = antioversmoothing.weights('swin_timm')
    old = {
        key.replace('layers.1.downsample', 'layers.0.downsample').replace(
            'head.fc', 'head'
        ): value
        for key, value in new.items()
    }
    assert old.keys() != new.keys()
    expected = weights.convert(new, 'swin')
    converted = weights.convert(old, 'swin')
    assert converted.keys() == expected.keys()
    assert all(converted[key].equal(value) for key, value in expected.items())


def test_distilled_model(antioversmoothing, refused):
    official = antioversmoothing.weights('deit_timm')
    official.update(
        {
            'dist_token': torch.zeros(1, 1, 16),
            'head_dist.weight': torch.zeros(5, 16),
            'head_dist.bias': torch.zeros(5),
        }
    )
    line = refused(official, family='deit')
    assert 'distilled models (dist_token, head_dist) are not supported' in line


@pytest.mark.parametrize(
    'name, key',
    [
        ('deit_attnscale', 'blocks.1.attn.lamb'),
        ('deit_featscale', 'blocks.0.lamb2'),
        ('deit_timm', 'norm.weight'),
        ('deit_timm', 'blocks.0.mlp.fc1.bias'),
        ('cait_attnscale', 'blocks.0.attn.proj_l.bias'),
        ('cait_featscale', 'blocks_token_only.1.attn.v.weight'),
        ('cait_timm', 'blocks.1.gamma_1'),
        ('swin_attnscale', 'layers.1.blocks.1.attn.relative_position_bias_table'),
        ('swin_featscale', 'layers.0.downsample.norm.bias'),
        ('swin_timm', 'layers.1.downsample.reduction.weight'),
        ('swin_timm', 'head.fc.bias'),
    ],
)
def test_missing_key(antioversmoothing, refused, name, key):
    official = antioversmoothing.weights(name)
    del official[key]
    line = refused(official, family=name.split('_')[0])
    assert f'missing 1 ({key}), left over 0' in line


@pytest.mark.parametrize(
    'name, key',
    [
        ('deit_timm', 'fc_norm.weight'),
        ('cait_attnscale', 'blocks_token_only.0.attn.lamb'),
        ('swin_timm', 'absolute_pos_embed'),
        ('swin_timm', 'layers.0.blocks.0.attn.w_msa.qkv.weight'),
    ],
)
def test_leftover_key(antioversmoothing, refused, name, key):
    official = {**antioversmoothing.weights(name), key: torch.zeros(2)}
    line = refused(official, family=name.split('_')[0])
    assert f'missing 0, left over 1 ({key})' in line


@pytest.mark.parametrize(
    'family, theirs',
    [
        ('deit', 'cait'),
        ('deit', 'swin'),
        ('cait', 'deit'),
        ('cait', 'swin'),
        ('swin', 'deit'),
        ('swin', 'cait'),
    ],
)
def test_other_family(antioversmoothing, refused, family, theirs):
    line = refused(antioversmoothing.weights(f'{theirs}_timm'), family=family)
    assert f'not the keys of a whole official {family!r} model' in line
