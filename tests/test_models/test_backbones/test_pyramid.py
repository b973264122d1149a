import torch

from mmlinattn.models import PyramidTransformer


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


def test_norm_cfg():
    arch = dict(embed_dims=[8, 16], depths=[3, 2], num_heads=[1, 2])
    model = PyramidTransformer(arch, norm_cfg=dict(type='GN', num_groups=2))
    assert any(isinstance(m, torch.nn.GroupNorm) for m in model.modules())
