"""Our models in timm: the contract of its own tests, on a few models."""

import re
from copy import deepcopy

import pytest
import timm
import torch
from mmengine.registry import MODELS, DefaultScope
from our_configs import ENTRIES, load
from timm_miniatures import small

import mmlinattn.timm as ours
from mmlinattn.weights import convert_back

CONFIGS = {name: config for name, (config, _) in ours.MODELS.items()}
# a pyramid, tables that grow with the image, a plain model, and class tokens; then the
# other classes
SMALL = ['softpp_tiny', 'swin_tiny_agent', 'vittt_tiny', 'deit_s12_featscale']
SMALL += ['cait_xxs24', 'mlla_tiny']
OTHERS = ['soft_tiny_norm', 'softpp_tiny_linear', 'swin_tiny_elfatt']
OTHERS += ['cswin_tiny_local', 'ravlt_tiny', 'mavit_tiny', 'hvittt_tiny', 'vssd_micro']
SELDOM = [pytest.param(name, marks=pytest.mark.full) for name in OTHERS]
NAMES = pytest.mark.parametrize('name', SMALL + SELDOM)


def create(name, **options):
    return timm.create_model(name, **small(name), **options)


@NAMES
def test_initializers_without_result(name, monkeypatch):
    """transformers replaces them by functions that return None."""
    shapes = {k: v.shape for k, v in create(name).state_dict().items()}
    for init in [x for x in dir(torch.nn.init) if x.endswith('_') and x[0] != '_']:
        monkeypatch.setattr(torch.nn.init, init, lambda *args, **kwargs: None)
    assert {k: v.shape for k, v in create(name).state_dict().items()} == shapes


def test_output_stride():
    """DeepLabV3Plus of segmentation_models_pytorch asks for 16."""
    create('softpp_tiny', output_stride=32, features_only=True)
    with pytest.raises(ValueError, match='output_stride=16 is not possible'):
        create('softpp_tiny', output_stride=16, features_only=True)


def test_names_and_configs():
    """Every classifier's config has a row, unless it is an ablation; the row has the
    config's backbone, without settings of the training."""
    assert {'softpp_tiny', 'swin_tiny_elfatt', 'cswin_tiny_elfatt'} < {*CONFIGS}
    assert {'mlla_tiny', 'ravlt_tiny', 'cait_s24', 'cswin_base_agent_384'} < {*CONFIGS}
    assert len(CONFIGS) == len(ours.MODELS) > 60
    ablations = {config for config in ENTRIES if '_in1k' in config} - {
        *CONFIGS.values()
    }
    known = r'.*-(m\d+|random|biased|pool|patch|plain|ridge|nonorm|sharedqk|linformer'
    known = rf'{known}|nystrom|performer|softmax|nolepe|elfatt-.*)|cait-.*_finetune'
    # timm has a ViT-S and EfficientViT
    known = rf'({known}|vit-s)_in1k|efficientvit-.*'
    assert [x for x in ablations if not re.fullmatch(known, x)] == []
    for name, config in CONFIGS.items():
        backbone = ours.backbone_of(name)
        cfg = load(config)
        options = cfg.model.backbone.items()
        expected = {key: x for key, x in options if x is not False}
        for key in ('out_type', 'out_norm', 'drop_rate', 'drop_path_rate'):
            expected.pop(key, None)
        expected['type'] = expected['type'].replace('mmlinattn.', '')
        if 'presets' in dir(getattr(ours.models, expected['type'])):
            expected.setdefault('attention', 'local')
            backbone = dict(dict(attention='local'), **backbone)
        assert backbone == expected, name
        known = timm.get_pretrained_cfg(name)
        assert known.file == ours.weights_of(config)
        resize, crop = cfg.test_dataloader.dataset.pipeline[1:3]
        assert known.input_size == (3, crop.crop_size, crop.crop_size)
        assert abs(known.crop_pct - crop.crop_size / resize.scale) < 0.005, name


@pytest.mark.modern_full
@NAMES
def test_same_as_the_classifier_of_the_config(name):
    metadata = ENTRIES[CONFIGS[name]]['Metadata']
    with torch.device('meta'):
        parameters = timm.create_model(name).parameters()
    assert sum(x.numel() for x in parameters) == metadata['Parameters']
    cfg, model = load(CONFIGS[name]).model, create(name).eval()
    cfg.backbone.pop('arch')  # or both would be merged
    cfg.backbone.update(small(name))
    cfg.head.in_channels = model.head_hidden_size
    if 'neck' in cfg:
        cfg.neck.in_channels = model.num_features
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        theirs = MODELS.build(cfg).eval()
    theirs.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 65, 96)
    with torch.no_grad():
        torch.testing.assert_close(theirs(x), model(x))


@NAMES
def test_forward_and_head(name):
    """Features, pooled or not, with the head or without, and timm's entries."""
    model, x = create(name).eval(), torch.randn(1, 3, 96, 96)
    cfg, keys = model.pretrained_cfg, model.state_dict()
    assert {f'{cfg["classifier"]}.weight', f'{cfg["first_conv"]}.weight'} < keys.keys()
    with torch.no_grad():
        features = model.forward_features(x)
        pooled = model.forward_head(features, pre_logits=True)
        logits = model(x)
        assert logits.isfinite().all()
        assert logits.shape == (1, 1000) == (1, model.num_classes)
        assert pooled.shape == (1, model.head_hidden_size)
        torch.testing.assert_close(model.get_classifier()(pooled), logits)
        model.reset_classifier(0)
        torch.testing.assert_close(model(x), pooled)
        model.reset_classifier(0, '')
        if cfg['pool_size'] is None:
            assert features.shape[2] == model.num_features
            assert model(x).equal(features)
            model.reset_classifier(5, 'avg')
            assert model(x).shape == (1, 5)
        else:
            side = 96 // (224 // cfg['pool_size'][0])
            assert features.shape == (1, model.num_features, side, side)
            assert model(x).shape == (1, model.head_hidden_size, side, side)
    with pytest.raises(ValueError, match="global_pool must be one of .*'max'"):
        model.reset_classifier(5, 'max')


@NAMES
def test_devices_and_dtypes(name):
    """As timm's own models, whole models and new heads have them."""
    model = create(name, dtype=torch.float64)
    kinds = {x.dtype for x in model.state_dict().values() if x.is_floating_point()}
    assert kinds == {torch.float64}
    assert model.eval()(torch.zeros(1, 3, 64, 64).double()).dtype == torch.float64
    with torch.no_grad():
        assert create(name).eval()(torch.zeros(1, 3, 64, 64)).dtype == torch.float32
    model = create(name, device='meta', num_classes=0)
    assert {x.device.type for x in model.state_dict().values()} == {'meta'}
    for changed in (model, create(name).half()):
        changed.reset_classifier(5)
        like, fc = next(changed.backbone.parameters()), changed.head.fc
        assert (fc.weight.dtype, fc.weight.device) == (like.dtype, like.device)
        assert (fc.bias.dtype, fc.bias.device) == (like.dtype, like.device)
    lean = create(name, features_only=True, dtype=torch.bfloat16, device='cpu')
    assert next(lean.parameters()).dtype == torch.bfloat16


@NAMES
def test_every_parameter_learns(name):
    model = create(name, num_classes=42, drop_path_rate=0.1).train()
    model.set_grad_checkpointing()
    out = model(torch.randn(2, 3, 64, 64))
    (out * torch.randn_like(out)).sum().backward()
    assert out.shape == (2, 42)
    assert [key for key, x in model.named_parameters() if x.grad is None] == []
    # distributed training stops at one without a gradient
    model = create(name, features_only=True, out_indices=(1,)).train()
    (maps,) = model(torch.randn(2, 3, 64, 64))
    (maps * torch.randn_like(maps)).sum().backward()
    assert [key for key, x in model.named_parameters() if x.grad is None] == []


@NAMES
def test_features(name):
    """Maps with and without the rest of the model, of any size."""
    model, x = create(name).eval(), torch.randn(1, 3, 65, 97)
    count = len(model.feature_info)
    with torch.no_grad():
        last, maps = model.forward_intermediates(x)
        assert last.equal(model.forward_features(x))
        assert len(maps) == count >= 4
        for info, y in zip(model.feature_info, maps):
            size = [-(-side // info['reduction']) for side in (65, 97)]
            assert y.shape == (1, info['num_chs'], *size)
            assert info['module'] in dict(model.named_modules())
        (second,) = model.forward_intermediates(x, [1], intermediates_only=True)
        assert second.equal(maps[1])
        _, pairs = model.forward_intermediates(
            x, output_fmt='NLC', return_prefix_tokens=True
        )
        for (tokens, prefix), y, both in zip(pairs, maps, model.backbone(x)):
            assert tokens.equal(y.flatten(2).transpose(1, 2))
            assert torch.cat((prefix, tokens), 1).equal(both)
        assert prefix.size(1) == model.num_prefix_tokens
        for indices in (None, (0, 2), (-1,), 2):
            options = {} if indices is None else dict(out_indices=indices)
            lean = create(name, features_only=True, **options).eval()
            missing, _ = lean.model.load_state_dict(model.state_dict(), strict=False)
            assert not missing
            stages = lean.feature_info.out_indices
            assert lean.feature_info.channels() == [
                model.feature_info[i]['num_chs'] for i in stages
            ]
            assert len(stages) == {None: 4, (0, 2): 2, (-1,): 1, 2: 2}[indices]
            for y, i in zip(lean(x), stages):
                torch.testing.assert_close(y, maps[i])
    with pytest.raises(ValueError, match="'NCHW' or 'NLC', got 'NHWC'"):
        model.forward_intermediates(x, output_fmt='NHWC')


@NAMES
def test_questions_to_a_vit(name):
    """anomalib asks models with 'vit' in their names, and lightly-train those of DeiT,
    for what timm's ViTs have."""
    model = create(name, pretrained_cfg=None, dynamic_img_size=True)
    stride = model.feature_info[0]['reduction']
    assert model.patch_embed.patch_size == (stride, stride)
    first = model.get_submodule(model.pretrained_cfg['first_conv'])
    assert first in [*model.patch_embed.modules()]
    assert model.state_dict().keys() == create(name).state_dict().keys()


class Adapted(torch.nn.Module):
    """A linear layer with an adapter beside it, as peft has them."""

    def __init__(self, layer):
        super().__init__()
        self.base_layer, self.added = layer, 0.1 * torch.randn_like(layer.weight)

    @property
    def weight(self):
        return self.base_layer.weight

    def forward(self, x):
        return self.base_layer(x) + x @ self.added.mT


@NAMES
def test_adapters(name):
    """They reach the output of each linear layer: merged, they change it as much."""
    model, x = create(name).eval().double(), torch.randn(1, 3, 64, 96).double()
    merged = deepcopy(model)
    layers = {k: v for k, v in model.named_modules() if isinstance(v, torch.nn.Linear)}
    for path, layer in layers.items():
        parent, _, child = path.rpartition('.')
        adapted = Adapted(layer)
        setattr(model.get_submodule(parent), child, adapted)
        merged.get_submodule(path).weight.data += adapted.added
    with torch.no_grad():
        torch.testing.assert_close(model(x), merged(x))


@NAMES
def test_an_image_of_nan(name):
    """anomalib runs models on memory that nobody has filled, to see their shapes."""
    with torch.no_grad():
        maps = create(name).eval()(torch.full((2, 3, 64, 64), torch.nan))
    assert maps.isnan().all()


@pytest.mark.modern_full
@NAMES
def test_groups_of_parameters(name):
    from timm.optim import param_groups_layer_decay

    model = create(name)
    keys = load(CONFIGS[name]).optim_wrapper.paramwise_cfg.custom_keys
    parameters = dict(model.named_parameters())
    undecayed = {x for x in parameters if any(key in x for key in keys)}
    assert model.no_weight_decay() == {x for x in undecayed if parameters[x].ndim > 1}
    groups = param_groups_layer_decay(model, layer_decay=0.5)
    scales = {id(x): group['lr_scale'] for group in groups for x in group['params']}
    first = model.get_parameter(f'{model.pretrained_cfg["first_conv"]}.weight')
    assert scales[id(model.head.fc.weight)] == 1
    assert scales[id(first)] == min(scales.values()) < 0.05
    coarse = model.group_matcher(coarse=True)
    assert {*map(coarse, parameters)} == {*range(-1, len(model.feature_info) + 1)}


@pytest.mark.parametrize('name', ['mlla_tiny', 'ravlt_tiny', 'cswin_tiny_agent'])
def test_pretrained(name, tmp_path):
    """Official weights load for other numbers of channels and classes."""
    model = create(name).eval()
    family = next(x for x in ('mlla', 'ravlt', 'agent') if x in name)
    official, _ = convert_back(model.state_dict(), family)
    path = tmp_path / 'official.pth'
    torch.save(dict(model=official), path)
    source = dict(file=str(path), custom_load=True)  # timm forgets it with the old file
    options = dict(pretrained=True, pretrained_cfg_overlay=source)
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        same = create(name, **options).eval()
        torch.testing.assert_close(same(x), model(x))
        gray = create(name, in_chans=1, num_classes=5, **options)
        pooled = gray.eval().forward_head(
            gray.forward_features(x[:, :1]), pre_logits=True
        )
        model.reset_classifier(0)
        expected = model(x[:, :1].expand(-1, 3, -1, -1))
        torch.testing.assert_close(pooled, expected)
        lean = create(name, features_only=True, **options).eval()
        _, maps = model.forward_intermediates(x)
        for y, expected in zip(lean(x), maps):
            torch.testing.assert_close(y, expected)


def test_no_pretrained():
    assert timm.is_model_pretrained('mlla_tiny')
    assert not timm.is_model_pretrained('softpp_tiny')
    with pytest.raises(RuntimeError, match='No pretrained weights exist'):
        timm.create_model('softpp_tiny', pretrained=True)


@pytest.mark.parametrize('name', ['swin_tiny_local', 'swin_tiny_elfatt', 'mlla_tiny'])
def test_img_size(name):
    """It matters if a part of the model depends on the size."""
    with torch.device('meta'):
        model = timm.create_model(name, img_size=(448, 448))
        plain = timm.create_model(name)
    assert model.state_dict().keys() == plain.state_dict().keys()
    attention = model.backbone.stages[0].blocks[0].attn
    assert getattr(attention, 'window_size', 14) == 14
