"""Mask2Former with Swin-T-ELFATT for instances on COCO, 50 epochs of large-scale jittering.
python tools/train.py configs/elfatt/mask2former_swin-t-elfatt_lsj-50e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former.py', '../_base_/settings/coco-instance_mask2former-50e.py']
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.2),
    panoptic_head=dict(in_channels=[96, 192, 384, 768]),
)
