"""EfficientViT's own segmentor for ADE20K, whose class also loads the authors' files."""

_base_ = 'mmseg::_base_/models/fpn_r50.py'
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b1_r224.pt#/efficientvit_b1_r224.pth'
)
norm_cfg = dict(type='SyncBN', requires_grad=True)
model = dict(
    type='mmlinattn.EfficientViTSegmentor',
    data_preprocessor=dict(size=(512, 512)),
    pretrained=None,
    backbone=dict(
        _delete_=True,
        type='mmlinattn.EfficientViT',
        arch='b1',
        out_indices=(1, 2, 3),
        drop_path_rate=0.05,
        norm_cfg=norm_cfg,
    ),
    neck=None,
    decode_head=dict(
        _delete_=True,
        type='mmlinattn.EfficientViTHead',
        in_channels=[64, 128, 256],
        in_index=(0, 1, 2),
        channels=64,
        num_classes=150,
        norm_cfg=norm_cfg,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
    ),
)
