import pytest
import torch

from mmlinattn.models import PyramidTransformer, SwinTransformer

ARCH = dict(embed_dims=[8, 16], depths=[3, 2], num_heads=[1, 2])
SOFT_CFG = dict(type='SoftmaxFreeAttention', sampling_ratio=4)


def test_start_as_in_the_papers():
    arch = dict(embed_dims=[64], depths=[1], num_heads=[1])
    model = PyramidTransformer(arch, img_size=32, with_cls_token=True)
    model.init_weights()
    (stage,) = model.stages
    for start in (stage.cls_token, stage.pos_embed.table):
        assert 0.005 < start.std() < 0.04
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            assert 0.015 < module.weight.std() < 0.025
            assert not module.bias.any()
        if isinstance(module, torch.nn.LayerNorm):
            assert (module.weight == 1).all() and not module.bias.any()


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(attention=[SOFT_CFG]), 'attention.*2 stages.*1'),
        (dict(block=[dict()] * 3), 'block.*2 stages.*3'),
        (dict(out_type='cls_token'), "cls_token.*'avg_featmap'"),
        (
            dict(with_cls_token=True, out_type='cls_token', out_indices=(0, 1)),
            r'out_indices.*\(0, 1\)',
        ),
        (dict(attention='ELFAT'), "attention must be a config.*'ELFAT'"),
        (dict(attention=[SOFT_CFG, [SOFT_CFG, 'x']]), "attention must be.*'x'"),
        (dict(stem='overlap'), "stem must be a config.*'overlap'"),
        (dict(img_size=0), 'img_size must be positive, got 0'),
        (dict(arch=dict(ARCH, depths=[1, 0])), r"arch.*'depths': \[1, 0\]"),
        (dict(arch=dict(ARCH, embed_dims=[8])), r"arch.*'embed_dims': \[8\]"),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        PyramidTransformer(**{'arch': ARCH, **options})


def test_norm_cfg_is_never_ignored():
    norm_cfg = dict(type='GN', num_groups=2)
    model = PyramidTransformer(ARCH, norm_cfg=norm_cfg)
    assert any(isinstance(m, torch.nn.GroupNorm) for m in model.modules())
    with pytest.raises(ValueError, match='norm_cfg.*would change nothing'):
        SwinTransformer(norm_cfg=norm_cfg)
