"""Official models and ours: the same functions, and every key accounted for."""

import pytest
import torch
from mmengine.registry import MODELS

from mmlinattn.models.backbones.presets import Stage, agents
from mmlinattn.models.backbones.swin import windows
from mmlinattn.weights import convert, convert_back, recognize
from mmlinattn.weights.conversion import plan_conversion
from mmlinattn.weights.rows import inside

pytestmark = pytest.mark.modern

PREFIX = 'backbone.'
TYPES = dict(
    soft='SOFT',
    deit='VisionTransformer',
    cait='CaiT',
    swin='SwinTransformer',
    cswin='CSWinTransformer',
    flatten='SwinTransformer',
    flatten_cswin='CSWinTransformer',
    agent='SwinTransformer',
    agent_cswin='CSWinTransformer',
    inline='SwinTransformer',
    inline_cswin='CSWinTransformer',
    polaformer='SwinTransformer',
)
OF_VITA = [
    f'{family}_{kind}'
    for family in ('deit', 'cait', 'swin')
    for kind in ('attnscale', 'featscale', 'timm')
]
VARIANTS = ['flatten_swin', 'flatten_cswin', 'agent_swin', 'agent_cswin']
VARIANTS += ['inline_swin', 'inline_cswin', 'polaformer_swin']
NAMES = [*OF_VITA, 'cswin_classifier', 'cswin_backbone', 'soft']
NAMES += [*VARIANTS, 'agent_detector', 'mlla_classifier', 'mlla_backbone']
NAMES += ['ravlt_classifier', 'ravlt_backbone', 'hvittt_classifier']
NAMES += ['hvittt_backbone', 'vittt_classifier']
MM_SWIN = dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 4])


def build(family, **options):
    return MODELS.build(dict(type=f'mmlinattn.{TYPES[family]}', **options))


@torch.no_grad()
def maps_of(family, converted, image, **options):
    """Maps of our backbone with converted weights."""
    model = build(family, **options)
    # a backbone for maps has no class layers
    found = model.load_state_dict(inside(converted, PREFIX), strict=False)
    assert not found.missing_keys
    return model.eval()(image)


@torch.no_grad()
def logits_of(family, converted, image, **options):
    """Logits of our classifier with converted weights."""
    out_type = 'avg_featmap' if 'swin' in family else 'cls_token'
    model = build(family, **{'out_type': out_type, **options})
    model.load_state_dict(inside(converted, PREFIX))
    (features,) = model.eval()(image)
    return features @ converted['head.fc.weight'].mT + converted['head.fc.bias']


# ---------------------------------------------------------- the same functions
@pytest.mark.parametrize('solver', ['newton', 'spectral'])
@pytest.mark.parametrize('image', ['noise', 'smooth'])
@pytest.mark.parametrize('variant', ['soft', 'softpp'])
def test_outputs_of_soft(soft, relative_error, variant, image, solver):
    outputs = soft.outputs(f'{variant}_{image}_')
    options = dict(arch=soft.ARCH, attn_norm=variant == 'softpp', solver=solver)
    args = 'soft', convert(soft.weights(), 'soft'), soft.image(image)
    errors = [relative_error(logits_of(*args, **options), outputs.pop('logits'))]
    stages = [outputs[key] for key in sorted(outputs)]
    errors += [relative_error(*x) for x in zip(maps_of(*args, **options), stages)]
    assert len(errors) == 5 and max(errors) < 1e-5, errors


@pytest.mark.parametrize('name', OF_VITA)
def test_outputs_of_antioversmoothing(
    antioversmoothing, official, relative_error, name
):
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


@pytest.mark.parametrize('kind', ['classifier', 'backbone'])
def test_outputs_of_cswin(cswin, relative_error, kind):
    """All maps of the backbone, for an image that no stripe divides."""
    options = dict(arch=cswin.ARCH, attention='local')
    args = 'cswin', convert(cswin.weights(kind), 'cswin'), cswin.image(kind)
    outputs = cswin.outputs(kind)
    if kind == 'backbone':
        maps = maps_of(*args, **options)
        errors = [relative_error(x, outputs[f'map{i}']) for i, x in enumerate(maps)]
        assert len(errors) == 4 and max(errors) < 1e-5, errors
    else:
        (last,) = maps_of(*args, **options, out_indices=(3,))
        assert relative_error(last.flatten(2).mT, outputs['tokens']) < 1e-5
        assert relative_error(logits_of(*args, **options), outputs['logits']) < 1e-5


# the base model of the paper, Agent-Swin-B, has such a third stage
STAGES = [Stage(i, 4) for i in range(4)]
AGENTS, WINDOWS = [agents(x) for x in STAGES[:3]], windows(STAGES[3])
FEW_AGENTS = [*AGENTS[:2], [AGENTS[2], WINDOWS[1]], WINDOWS]


@pytest.mark.parametrize('name', [*VARIANTS, 'agent_detector'])
def test_outputs_of_variants(variants, official, relative_error, name):
    """All maps of the detectors' backbone, for an image with odd sides."""
    family, weights = official(name)
    kind = name if name in TYPES else family
    recorded = variants[name]
    options = dict(arch=recorded.ARCHS['cswin' if 'cswin' in name else 'swin'])
    options['attention'] = FEW_AGENTS if name == 'agent_swin' else family
    args = kind, convert(weights, family), recorded.image(name)
    outputs = recorded.outputs(name)
    if name == 'agent_detector':
        found = recorded.thin(maps_of(*args, dense_agents=True, **options))
    else:
        (last,) = maps_of(*args, **options, out_indices=(3,))
        found = dict(tokens=last.flatten(2).mT)
        found['logits'] = logits_of(*args, **options, out_type='avg_featmap')
    assert found.keys() == outputs.keys()
    errors = {key: relative_error(x, outputs[key]) for key, x in found.items()}
    assert max(errors.values()) < 1e-5, errors


CSWINS = dict(tiny='t24181', small='s36292', base='b36292')


@pytest.mark.parametrize('size', CSWINS)
@pytest.mark.parametrize('name', VARIANTS)
def test_parameters_of_full_models(variants, name, size):
    """They equal those of the papers' classifiers."""
    arch = CSWINS[size] if 'cswin' in name else size
    family = name.partition('_')[0]
    kind = name if name in TYPES else family
    with torch.device('meta'):
        model = build(kind, arch=arch, attention=family, out_type='avg_featmap')
    head = 1000 * (model.feature_channels[-1] + 1)
    number = sum(x.numel() for x in model.parameters()) + head
    assert number == variants[name].outputs('parameters')[f'{name}_{size}']


def mm_backbone(family, **options):
    """A backbone of mmpretrain with random weights, and these in a classifier."""
    pytest.importorskip('mmpretrain')
    model = MODELS.build(dict(type=f'mmpretrain.{TYPES[family]}', **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.eval()
    return model, {f'{PREFIX}{key}': x for key, x in model.state_dict().items()}


# told to pad small maps, mmpretrain shifts them too, which Swin itself doesn't
NO_SHIFT = dict(MM_SWIN, depths=[2, 2, 1, 1])


@pytest.mark.parametrize(
    'arch, height, width',
    [(MM_SWIN, 224, 224), (MM_SWIN, 230, 311), (NO_SHIFT, 64, 96), (NO_SHIFT, 60, 129)],
)
@torch.no_grad()
def test_swin_of_mmpretrain(relative_error, arch, height, width):
    options = dict(out_indices=(0, 1, 2, 3), pad_small_map=arch is NO_SHIFT)
    theirs, weights = mm_backbone('swin', arch=arch, **options)
    x = torch.randn(2, 3, height, width)
    maps = maps_of('swin', convert(weights, 'swin'), x, arch=arch)
    errors = [relative_error(*pair) for pair in zip(maps, theirs(x))]
    assert len(errors) == 4 and max(errors) < 1e-5, errors
    back, _ = convert_back(
        convert(weights, 'swin'), 'swin', plan_conversion(weights, 'swin').describe()
    )
    assert all(back[key].equal(weights[key]) for key in back)
    index = 'relative_position_index'
    assert back.keys() == {key for key in weights if not key.endswith(index)}


# ----------------------------------------------------------------------- keys
def full_shapes(name, soft, cswin):
    """Names and shapes of an official model."""
    if name != 'soft' and name != 'cswin':
        family, _, arch = name.partition('-')
        arch = name if family == 'deit' else arch
        return mm_backbone(family, arch=arch)[1]
    recorded = soft if name == 'soft' else cswin
    key = 'soft_tiny' if name == 'soft' else 'tiny'
    shapes = recorded.recording.read_shapes(name)[key]
    return {key: torch.empty(shape, device='meta') for key, shape in shapes.items()}


@pytest.mark.parametrize('name', ['soft', 'cswin', 'deit-small', 'swin-tiny'])
def test_keys_of_full_models(soft, cswin, name):
    """Every key and shape of models of the papers' sizes."""
    family = name.partition('-')[0]
    converted = convert(full_shapes(name, soft, cswin), family)
    arch = dict(soft='tiny', cswin='tiny', deit=name, swin='tiny')[family]
    options = dict(attention='local') if family == 'cswin' else {}
    options.update(dict(out_indices=(3,)) if 'swin' in family else {})
    with torch.device('meta'):
        model = build(family, arch=arch, **options)
    found = {key: x.shape for key, x in inside(converted, PREFIX).items()}
    assert found == {key: x.shape for key, x in model.state_dict().items()}


@pytest.mark.parametrize('name', NAMES)
def test_recognized(official, name):
    family, weights = official(name)
    assert recognize(weights) == family
    assert recognize({f'backbone.{key}': x for key, x in weights.items()}) == family
    assert recognize(convert(weights, family)) == 'mmlinattn'
    assert recognize(['backbone.conv1.weight', 'cls_token', 'pos_embed']) is None


@pytest.mark.parametrize('name', NAMES)
def test_round_trip_is_exact(official, name):
    """It is exact with the metadata of the conversion, and without."""
    family, weights = official(name)
    layouts = [plan_conversion(weights, family).describe()]
    for layout in layouts if name == 'swin_timm' else [*layouts, None]:
        back, _ = convert_back(convert(weights, family), family, layout)
        assert back.keys() == weights.keys()
        assert all(back[key].equal(value) for key, value in weights.items())


def test_way_back_accounts_for_every_key(official):
    family, weights = official('deit_timm')
    ours = convert(weights, family)
    lacking = {key: x for key, x in ours.items() if key != 'backbone.norm1.bias'}
    with pytest.raises(ValueError, match=r'missing 1 \(backbone.norm1.bias\), left o'):
        convert_back(lacking, family)
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
        ('swin_attnscale', 'layers.1.blocks.1.attn.relative_position_bias_table'),
        ('cswin_backbone', 'norm2.bias'),
        ('ravlt_classifier', 'norm.running_var'),
        ('hvittt_backbone', 'norm1.bias'),
        ('vittt_classifier', 'blocks.1.attn.w3'),
        ('flatten_cswin', 'stage2.1.attns.0.get_v.weight'),
        ('agent_swin', 'layers.2.blocks.1.attn.relative_position_bias_table'),
        ('inline_cswin', 'stage2.0.attns.0.residual.0.weight'),
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
