"""UperNet with RAVLT-B on ADE20K, 1x (160k iterations, mixed precision).
Authors' README: mIoU 52.5, 77M parameters, 1050 GFLOPs.
    python tools/train.py configs/ravlt/upernet_ravlt-b_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_ravlt-s.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_B.pth#/RAVLT_B.pth'
model = dict(
    backbone=dict(arch='base', drop_path_rate=0.4),
    decode_head=dict(in_channels=[96, 192, 384, 512]),
    auxiliary_head=dict(in_channels=384),
)
optim_wrapper = dict(type='AmpOptimWrapper')
