"""Official models and ours: the same functions, and every key accounted for."""

import antioversmoothing_fixture as antioversmoothing
import cswin_fixture as cswin
import pytest
import recording
import soft_fixture as soft
import timm
import torch
import variants_fixture as variants
from mmengine.registry import MODELS

from mmlinattn.models import VisionTransformer
from mmlinattn.utils.names import inside
from mmlinattn.weights import convert, convert_back, recognize
from mmlinattn.weights.conversion import plan_conversion
from mmlinattn.weights.families import FAMILIES

pytestmark = pytest.mark.modern_full

PREFIX = 'backbone.'
OF_VITA = [
    f'{family}_{kind}'
    for family in ('deit', 'cait', 'swin')
    for kind in ('attnscale', 'featscale', 'timm')
]
OF_CSWIN = ['cswin_classifier', 'cswin_backbone']
NAMES = [*OF_VITA, *OF_CSWIN, 'soft']
# MAViT's keys are RAVLT's
NAMES += [name for name in recording.by_name() if not name.startswith('mavit')]


def build(name, **options):
    """Our backbone for a recording or a family, by the name."""
    swin = 'CSWinTransformer' if 'cswin' in name else 'SwinTransformer'
    others = dict(soft='SOFT', deit='VisionTransformer', cait='CaiT')
    kind = others.get(name.partition('_')[0], swin)
    return MODELS.build(dict(type=f'mmlinattn.{kind}', **options))


@torch.no_grad()
def maps_of(name, converted, image, **options):
    """Maps of our backbone with converted weights."""
    model = build(name, **options)
    # a backbone for maps has no class layers
    incompatible = model.load_state_dict(inside(converted, PREFIX), strict=False)
    assert not incompatible.missing_keys
    return model.eval()(image)


@torch.no_grad()
def logits_of(name, converted, image, **options):
    """Logits of our classifier with converted weights."""
    out_type = 'avg_featmap' if 'swin' in name else 'cls_token'
    model = build(name, out_type=out_type, **options)
    model.load_state_dict(inside(converted, PREFIX))
    (features,) = model.eval()(image)
    return features @ converted['head.fc.weight'].mT + converted['head.fc.bias']


# ---------------------------------------------------------- the same functions
@pytest.mark.parametrize('solver', ['newton', 'spectral'])
@pytest.mark.parametrize('image', ['noise', 'smooth'])
@pytest.mark.parametrize('variant', ['soft', 'softpp'])
def test_outputs_of_soft(relative_error, variant, image, solver):
    outputs = soft.outputs(variant, image)
    options = dict(arch=soft.ARCH, attn_norm=variant == 'softpp', solver=solver)
    args = 'soft', convert(soft.weights(), 'soft'), soft.image(image)
    errors = [relative_error(logits_of(*args, **options), outputs.pop('logits'))]
    stages = [outputs[key] for key in sorted(outputs)]
    errors += [relative_error(*x) for x in zip(maps_of(*args, **options), stages)]
    assert len(errors) == 5 and max(errors) < 1e-5, errors


@pytest.mark.parametrize('name', OF_VITA)
def test_outputs_of_antioversmoothing(official, relative_error, name):
    family, weights = official(name)
    options = dict(arch=antioversmoothing.ARCHS[family])
    scale = dict(attnscale='attn_scale', featscale='feat_scale').get(name[5:])
    options.update({scale: True} if scale else {})
    if family == 'swin':
        options.update(out_indices=(1,))
    else:
        options.update(img_size=antioversmoothing.IMG_SIZES[family])
        options.update(patch_size=antioversmoothing.PATCH_SIZE)
    args = family, convert(weights, family), antioversmoothing.image(family)
    outputs = antioversmoothing.outputs(name)
    assert relative_error(logits_of(*args, **options), outputs['logits']) < 1e-5
    patches = maps_of(*args, **options)[-1].flatten(2).mT
    assert relative_error(patches, outputs['tokens'][:, -patches.size(1) :]) < 1e-5


@pytest.mark.parametrize('name', [*OF_CSWIN, *variants.NAMES])
def test_outputs_of_swin_and_cswin(official, few_agents, relative_error, name):
    """All maps of backbones for detectors, for images that no stripe divides or with
    odd sides."""
    family, weights = official(name)
    if name in OF_CSWIN:
        options = dict(arch=cswin.ARCH, attention='local')
        recorded = cswin, name.partition('_')[2]
    else:
        attention = few_agents if name == 'agent_swin' else family
        options = dict(arch=variants.ARCHS[name], attention=attention)
        recorded = variants, name
    fixture, kind = recorded
    outputs = fixture.outputs(kind)
    args = name, convert(weights, family), fixture.image(kind)
    if 'logits' in outputs:
        if 'swin' in name.split('_'):
            options.update(pad_small_map=False)
        (last,) = maps_of(*args, **options, out_indices=(3,))
        results = dict(tokens=last.flatten(2).mT)
        results['logits'] = logits_of(*args, **options)
    elif name == 'agent_detector':
        results = variants.thin(maps_of(*args, dense_agents=True, **options))
    else:
        results = {f'map{i}': x for i, x in enumerate(maps_of(*args, **options))}
    assert results.keys() == outputs.keys()
    errors = {key: relative_error(x, outputs[key]) for key, x in results.items()}
    assert max(errors.values()) < 1e-5, errors


@pytest.mark.parametrize('name', variants.DENSE)
def test_outputs_of_detectors_on_small_maps(official, relative_error, name):
    """Maps that are no larger than a window, too, are padded and shifted."""
    detector = 'agent_detector'
    family, weights = official(detector)
    options = dict(arch=variants.ARCHS[detector], attention=family, dense_agents=True)
    args = detector, convert(weights, family), variants.image(name)
    results = variants.thin(maps_of(*args, **options), variants.DENSE_STRIDE)
    errors = [relative_error(results[k], x) for k, x in variants.outputs(name).items()]
    assert len(errors) == 4 and max(errors) < 1e-5, errors


@pytest.mark.parametrize('name', recording.ours())
@torch.no_grad()
def test_outputs_of_our_model_for_a_recording(official, relative_error, name):
    """Logits of a classifier, or maps of a backbone."""
    fixture, (family, weights) = recording.by_name()[name], official(name)
    converted, expected = convert(weights, family), fixture.outputs(name)
    is_classifier = 'logits' in expected
    options = dict(out_type='avg_featmap') if is_classifier else {}
    model = MODELS.build({**recording.ours()[name], **options}).eval()
    model.load_state_dict(inside(converted, PREFIX))
    outs = model(fixture.image(name))
    if is_classifier:
        weight, bias = converted['head.fc.weight'], converted['head.fc.bias']
        results = dict(logits=outs[-1] @ weight.mT + bias)
    else:
        results = {f'map{i}': out for i, out in enumerate(outs)}
    assert results.keys() == expected.keys()
    for key, result in results.items():
        assert relative_error(result, expected[key]) < 1e-5, key


CSWINS = dict(tiny='t24181', small='s36292', base='b36292')


@pytest.mark.parametrize(
    'size',
    ['tiny', *(pytest.param(x, marks=pytest.mark.full) for x in ('small', 'base'))],
)
@pytest.mark.parametrize('name', [x for x in variants.NAMES if 'swin' in x])
def test_parameters_of_full_models(name, size):
    """They equal those of the papers' classifiers."""
    arch = CSWINS[size] if 'cswin' in name else size
    family = name.partition('_')[0]
    with torch.device('meta'):
        model = build(name, arch=arch, attention=family, out_type='avg_featmap')
    head = 1000 * (model.feature_channels[-1] + 1)
    number = sum(x.numel() for x in model.parameters()) + head
    assert number == variants.number_of_parameters(name, size)


# ----------------------------------------------------------------------- keys
@pytest.mark.parametrize('family, name', [('soft', 'soft_tiny'), ('cswin', 'tiny')])
def test_keys_of_full_models(family, name):
    """Every key and shape of models of the papers' sizes."""
    shapes = dict(soft=soft, cswin=cswin)[family].RECORDING.shapes()[name]
    with torch.device('meta'):
        official = {key: torch.empty(shape) for key, shape in shapes.items()}
        options = dict(attention='local', out_indices=(3,)) if family == 'cswin' else {}
        model = build(family, arch='tiny', **options)
    converted = inside(convert(official, family), PREFIX)
    expected = {key: x.shape for key, x in model.state_dict().items()}
    assert {key: x.shape for key, x in converted.items()} == expected


@pytest.mark.parametrize('name', NAMES)
def test_recognized_and_converted_back(official, name):
    """It is exact with the metadata of the conversion, and without."""
    family, weights = official(name)
    ours = convert(weights, family)
    assert recognize(weights) == family and recognize(ours) == 'mmlinattn'
    if not FAMILIES[family].is_inside:
        assert recognize({f'{PREFIX}{key}': x for key, x in weights.items()}) == family
    layouts = [plan_conversion(weights, family).describe()]
    for layout in layouts if name == 'swin_timm' else [*layouts, None]:
        back, _ = convert_back(ours, family, layout)
        assert back.keys() == weights.keys()
        assert all(back[key].equal(value) for key, value in weights.items())


def test_keys_of_others_are_not_recognized():
    assert recognize(['backbone.conv1.weight', 'cls_token', 'pos_embed']) is None


def test_way_back_accounts_for_every_key(official):
    family, weights = official('deit_timm')
    ours = convert(weights, family)
    incomplete = {key: x for key, x in ours.items() if key != 'backbone.norm1.bias'}
    with pytest.raises(ValueError, match=r'missing 1 \(backbone.norm1.bias\), left o'):
        convert_back(incomplete, family)
    with pytest.raises(ValueError, match=r'missing 0, left over 1 \(backbone.x\)'):
        convert_back({**ours, 'backbone.x': torch.zeros(1)}, family)
    family, weights = official('cait_timm')
    maps = {k: x for k, x in convert(weights, family).items() if 'class_' not in k}
    with pytest.raises(ValueError, match='the class layers are missing'):
        convert_back(maps, family)


def test_parts_of_a_detector_stay(official):
    """A detector of the official repository, which numbers its norms."""
    family, weights = official('swin_featscale')
    detector = {
        f'backbone.{key}'.replace('backbone.norm.', 'backbone.norm1.'): x
        for key, x in weights.items()
        if not key.startswith('head.')
    }
    detector['backbone.norm0.weight'] = detector['backbone.norm0.bias'] = torch.ones(8)
    detector['neck.fpn_convs.0.conv.bias'] = torch.ones(3)
    assert recognize(detector) == family
    ours = convert(detector, family)
    assert ours['backbone.norm1.bias'].equal(weights['norm.bias'])
    assert ours['neck.fpn_convs.0.conv.bias'].equal(torch.ones(3))
    back, _ = convert_back(ours, family)
    assert back.keys() == detector.keys()
    assert all(back[key].equal(value) for key, value in detector.items())


@pytest.mark.parametrize(
    'name, key',
    [
        ('soft', 'patch_embed2.proj.1.running_var'),
        ('deit_featscale', 'blocks.0.lamb2'),
        ('cait_featscale', 'blocks_token_only.1.attn.v.weight'),
        ('cswin_backbone', 'norm2.bias'),
        ('ravlt_classifier', 'norm.running_var'),
        ('vittt_classifier', 'blocks.1.attn.w3'),
        ('flatten_cswin', 'stage2.1.attns.0.get_v.weight'),
        ('agent_swin', 'layers.2.blocks.1.attn.relative_position_bias_table'),
        # keys of others
        ('deit_timm', 'fc_norm.weight'),
        ('cait_attnscale', 'blocks_token_only.0.attn.lamb'),
        ('cswin_classifier', 'norm1.bias'),
        ('polaformer_swin', 'layers.0.blocks.0.attn.qkv.weight'),
    ],
)
def test_missing_and_leftover_keys(official, name, key):
    family, weights = official(name)
    message = rf'missing 0, left over 1 \({key}\)'
    if key in weights:
        message = rf'missing 1 \({key}\), left over 0'
        del weights[key]
    else:
        weights[key] = torch.zeros(2)
    with pytest.raises(ValueError, match=message):
        convert(weights, family)


def test_distilled_model(official):
    _, weights = official('deit_timm')
    weights['dist_token'] = torch.zeros(1, 1, 16)
    with pytest.raises(ValueError, match='distilled models .* are not supported'):
        convert(weights, 'deit')


def test_dinov2_of_timm():
    """A plain ViT with LayerScale, whose file has a token of its own training."""
    model = timm.create_model(
        'vit_tiny_patch16_224',
        img_size=56,
        patch_size=14,
        depth=2,
        init_values=0.1,
        num_classes=0,
    ).eval()
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    weights = dict(model.state_dict(), mask_token=torch.zeros(1, 192))
    assert recognize(weights) == 'deit'
    converted = convert(weights, 'deit')
    ours = VisionTransformer(
        dict(embed_dims=192, num_layers=2, num_heads=3),
        img_size=56,
        patch_size=14,
        block=dict(layer_scale=1.0),
        out_type='cls_token',
    ).eval()
    ours.load_state_dict({k[9:]: x for k, x in converted.items()})
    images = torch.randn(1, 3, 56, 56)
    with torch.no_grad():
        theirs = model.forward_features(images)[:, 0]
        torch.testing.assert_close(ours(images)[0], theirs, rtol=1e-4, atol=1e-4)
    back, _ = convert_back(converted, 'deit')
    assert back.keys() == model.state_dict().keys()
    assert all(torch.equal(back[key], x) for key, x in model.state_dict().items())
