import pytest
import torch
from torch import nn

from mmlinattn.models import SoftmaxAttention, VisionTransformer
from mmlinattn.weights import pretrained

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3)


def build(**options):
    return VisionTransformer(
        **{'arch': ARCH, 'img_size': 64, 'patch_size': 8, **options}
    ).eval()


def randomize(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def images(height=48, width=72):
    return torch.randn(2, 3, height, width)


def test_structure():
    with torch.device('meta'):
        model = VisionTransformer(drop_path_rate=0.1)
    assert len(model.blocks) == model.num_stages == 12
    assert model.out_indices == (11,) and model.feature_channels == (384,)
    for i, block in enumerate(model.blocks):
        assert isinstance(block.attn, SoftmaxAttention) and block.pre_norm
        assert block.attn.num_heads == 6 and block.attn.qkv.bias is not None
        assert block.norm1.eps == block.norm2.eps == 1e-6
        (activation,) = (m for m in block.ffn.modules() if type(m) is nn.GELU)
        assert activation.approximate == 'none'
        rate = getattr(block.drop_path, 'drop_prob', 0)
        assert rate == pytest.approx(0.1 * i / 11)
    assert model.norm11.eps == 1e-6
    assert model.cls_token.shape == (1, 1, 384)
    assert model.pos_embed.table.shape == (1, 1 + 14**2, 384)


@pytest.mark.parametrize('num_layers', (1, 24))
def test_any_depth(num_layers):
    with torch.device('meta'):
        model = VisionTransformer('deit-base', num_layers=num_layers)
    assert len(model.blocks) == num_layers
    assert model.out_indices == (num_layers - 1,)
    assert VisionTransformer.arch_zoo['deit-base']['num_layers'] == 12


@pytest.mark.parametrize('height, width', ((64, 64), (48, 72), (33, 95)))
def test_matches_the_definition(height, width):
    model = randomize(build(out_indices=(0, 2)))
    image = images(height, width)
    padded = nn.functional.pad(image, (0, -width % 8, 0, -height % 8))
    maps = model.patch_embed.layer[0](padded)
    hw_shape = maps.shape[2:]
    stored = model.pos_embed.table[:, 1:].unflatten(1, (8, 8)).permute(0, 3, 1, 2)
    maps = maps + nn.functional.interpolate(
        stored, hw_shape, mode='bicubic', align_corners=False
    )
    token = model.cls_token + model.pos_embed.table[:, :1]
    x = torch.cat((token.expand(2, -1, -1), maps.flatten(2).mT), dim=1)
    expected = []
    for block in model.blocks:
        x = x + block.attn(block.norm1(x), hw_shape)
        x = x + block.ffn(block.norm2(x))
        expected.append(x)
    outs = model(image)
    for i, out in zip((0, 2), outs):
        norm = getattr(model, f'norm{i}')
        want = norm(expected[i])[:, 1:].mT.unflatten(-1, hw_shape)
        torch.testing.assert_close(out, want)
    assert not hasattr(model, 'norm1')


def test_class_token_counts_in_the_means():
    block = randomize(build(feat_scale=True)).blocks[0]
    nn.init.constant_(block.feat_scale.hc_scale, -1)  # the mean alone is left
    x = torch.randn(2, 1 + 12, 12)
    branch = block.attention(x, (3, 4))
    attended = block.attn(x, (3, 4)).mean(1, keepdim=True)
    expected = (1 + block.feat_scale.dc_scale) * attended
    torch.testing.assert_close(branch, expected.expand_as(branch))


@pytest.fixture
def checkpoint(tmp_path):
    """Weights of a classifier's backbone, and the model."""
    model = randomize(build(out_type='cls_token'))
    path = str(tmp_path / 'weights.pth')
    torch.save(model.state_dict(), path)
    return dict(type='Pretrained', checkpoint=path), model


def test_norms_of_earlier_maps_start_fresh(checkpoint, monkeypatch):
    """A classifier has the last one alone."""
    init_cfg, classifier = checkpoint
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *args: said.append(text))
    model = build(out_indices=(0, 2), init_cfg=init_cfg)
    model.init_weights()
    assert said[0].endswith(
        'not used: 0; start at zero: 0; start as fresh norms: 2 (norm0.weight, '
        'norm0.bias)'
    )
    assert (model.norm0.weight == 1).all() and not model.norm0.bias.any()
    assert model.norm2.weight.equal(classifier.norm2.weight)
    x = images()
    classifier.out_type = 'featmap'
    assert model(x)[1].equal(classifier(x)[0])


def test_norm_of_the_last_map_must_be_there(checkpoint):
    init_cfg, classifier = checkpoint
    state_dict = classifier.state_dict()
    del state_dict['norm2.weight']
    torch.save(state_dict, init_cfg['checkpoint'])
    with pytest.raises(KeyError, match='lacks 1 .*norm2.weight'):
        build(init_cfg=init_cfg).init_weights()
    # another depth
    with pytest.raises(KeyError, match='lacks'):
        build(num_layers=2, init_cfg=init_cfg).init_weights()


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(arch='deit-tiny'), "arch.*'deit-small'.*'deit-tiny'"),
        (dict(num_layers=0), 'num_layers.*positive integer, got 0'),
        (dict(arch=dict(ARCH, num_heads=[3])), r'num_heads.*got \[3\]'),
        (dict(arch=dict(ARCH, embed_dims=12.0)), r'embed_dims.*got 12\.0'),
        (dict(patch_size=7), 'patch_size=7 and img_size=64'),
        (dict(patch_size=0), 'patch_size=0'),
        (dict(img_size=0), 'img_size=0'),
        (dict(out_type='cls_token', out_indices=(1,)), r'out_indices must be \(2,\)'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
