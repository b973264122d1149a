"""DINO on four scales with Swin-T-ELFATT on COCO, 1x (12 epochs).
python tools/train.py configs/elfatt/dino-4scale_swin-t-elfatt_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/dino-4scale.py', '../_base_/settings/coco-detection_dino-1x.py']
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.2),
    neck=dict(in_channels=[192, 384, 768]),
)
