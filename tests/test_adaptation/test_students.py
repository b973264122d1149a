"""Configs of students, and of teachers that are the libraries' own."""

import copy

import pytest
import torch
from miniature_backbones import CASES

from mmlinattn.adaptation import our_backbone, student_config
from mmlinattn.parts import build_model
from mmlinattn.weights import load_pretrained

SWIN, SOFTPP, VIT = (
    CASES[name] for name in ('SwinTransformer', 'SOFTPlusPlus', 'VisionTransformer')
)
SWIN_SIZES = dict(embed_dims=16, depths=[2, 1, 2, 1], num_heads=[1, 2, 4, 4])
PLAIN_SIZES = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=96)


@pytest.mark.parametrize(
    'teacher, attention, options, text',
    [
        (SWIN, 'elfat', None, "no attention 'elfat': did you mean .*ELFATT"),
        (SWIN, 'efficientattention', None, 'did you mean EfficientAttention'),
        (SWIN, 'xyz', None, "no attention 'xyz': there are AgentAttention, "),
        (SWIN, 'RetinaNet', None, 'no attention'),
        (SWIN, 'ELFATT', dict(block_sice=4), "no option 'block_sice': it has .*block_"),
        (SWIN, 'agent', dict(lepe=True), "'agent' is a model of SwinTransformer"),
        (CASES['EfficientViT'], 'ELFATT', None, 'takes no other attention: .*Swin'),
        (SOFTPP, 'LinearSOFTPlusPlus', dict(a=1), 'is a backbone'),
        (dict(type='ResNet'), 'ELFATT', None, 'ResNet is no backbone of mmlinattn'),
    ],
)
def test_wrong_names(teacher, attention, options, text):
    with pytest.raises(ValueError, match=text):
        student_config(teacher, attention, options)


def test_a_paper_model_lends_its_attentions():
    """Not its embeddings; options of the teacher's own attentions are dropped."""
    student = build_model(student_config(SWIN, 'elfatt'))
    assert student.stages[0].embedding.layer[0].kernel_size == (4, 4)
    teacher = dict(SWIN, attention='elfatt', block_sizes=49)
    student = build_model(student_config(teacher, 'AgentAttention'))
    assert student.stages[0].embedding.layer[0].kernel_size == (7, 7)


def test_options_and_stages():
    cfg = student_config(SWIN, ['local', 'local', 'ELFATT', 'ELFATT'], None)
    kinds = [type(s.blocks[0].attn).__name__ for s in build_model(cfg).stages]
    assert kinds == ['WindowAttention', 'WindowAttention', 'ELFATT', 'ELFATT']
    teacher = dict(SWIN, init_cfg=dict(type='Pretrained', checkpoint='a.pth'))
    cfg = student_config(teacher, 'ELFATT', dict(block_size=16))
    assert cfg['attention'] == dict(type='ELFATT', block_size=16)
    assert 'init_cfg' not in cfg and 'init_cfg' in teacher


def test_windows_of_another_size_stay():
    """Of stages that keep their attention, in a teacher of larger images."""
    teacher = dict(SWIN, img_size=384)
    student = build_model(
        student_config(teacher, ['local', 'local', 'ELFATT', 'local'])
    )
    assert student.stages[1].blocks[0].attn.window_size == 12
    assert student.stages[3].blocks[0].attn.window_size == 12
    build_model(student_config(teacher, 'ELFATT'))


HOSTS = [
    dict(type='mmdet.SwinTransformer', **SWIN_SIZES),
    dict(type='mmseg.SwinTransformer', pretrain_img_size=384, **SWIN_SIZES),
    dict(type='mmpretrain.SwinTransformer', arch=SWIN_SIZES),
    dict(
        type='mmpretrain.SwinTransformer',
        img_size=128,
        arch=SWIN_SIZES,
        stage_cfgs=dict(block_cfgs=dict(window_size=4)),
    ),
    # as DeiT, and as DINOv2
    dict(
        type='mmpretrain.VisionTransformer',
        arch=PLAIN_SIZES,
        img_size=64,
        patch_size=8,
        out_type='featmap',
    ),
    dict(
        type='mmpretrain.VisionTransformer',
        arch=PLAIN_SIZES,
        img_size=56,
        patch_size=14,
        layer_scale_init_value=0.1,
    ),
]


@pytest.mark.parametrize('cfg', HOSTS)
def test_backbones_of_the_libraries(cfg, tmp_path):
    """Ours computes the same from the same file."""
    models = pytest.importorskip(f'{cfg["type"].partition(".")[0]}.models')
    assert models
    from mmengine.registry import MODELS

    host = MODELS.build(copy.deepcopy(cfg))
    host.eval()
    for parameter in host.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    path = tmp_path / 'host.pth'
    weights = {f'backbone.{key}': x for key, x in host.state_dict().items()}
    torch.save(dict(state_dict=weights), path)
    ours = build_model(our_backbone(cfg)).eval()
    load_pretrained(ours, str(path))
    side = cfg.get('img_size', 224)
    images = torch.randn(1, 3, side, side)
    with torch.no_grad():
        theirs = host(images)
        for out, target in zip(ours(images), theirs):
            torch.testing.assert_close(out, target, rtol=1e-4, atol=1e-4)
    assert len(ours(images)) == len(theirs)


@pytest.mark.parametrize(
    'cfg, scope, text',
    [
        (dict(type='PyramidVisionTransformerV2'), 'mmdet', 'mmdet.PyramidVisionTransf'),
        (dict(type='mmdet.ResNet'), 'mmseg', 'no backbone of mmlinattn has its proj'),
        (dict(type='SwinTransformer', mlp_ratio=3), 'mmseg', 'mmseg.Swin.*mlp_ratio=3'),
        (dict(type='SwinTransformer', arch='x'), 'mmpretrain', "arch='x': mmlinattn"),
        (dict(type='VisionTransformer', bias=1), 'mmpretrain', 'bias=1: mmlinattn has'),
    ],
)
def test_what_has_no_counterpart(cfg, scope, text):
    with pytest.raises(ValueError, match=text):
        our_backbone(cfg, scope)


def test_ours_stay_as_they_are():
    cfg = dict(type='mmlinattn.SwinTransformer', arch='tiny', drop_path_rate=0.2)
    assert our_backbone(cfg, 'mmdet') == cfg
    assert our_backbone(dict(type='SOFTPlusPlus')) == dict(type='SOFTPlusPlus')
