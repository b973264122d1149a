"""UperNet with DeiT-S12 + AttnScale on Cityscapes, 1x (40k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s12-attnscale_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/cityscapes_768x768.py',
    '../_base_/schedules/cityscapes-seg_1x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(768, 768)),
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch='deit-small',
        num_layers=12,
        out_indices=(2, 5, 8, 11),
        drop_path_rate=0.1,
        attn_scale=True,
    ),
    neck=dict(
        type='MultiLevelNeck',
        in_channels=[384, 384, 384, 384],
        out_channels=384,
        scales=[4, 2, 1, 0.5],
    ),
    decode_head=dict(in_channels=[384, 384, 384, 384]),
    auxiliary_head=dict(in_channels=384),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
