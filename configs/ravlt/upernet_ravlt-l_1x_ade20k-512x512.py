"""UperNet with RAVLT-L on ADE20K, 1x (160k iterations, mixed precision).
Authors' README: mIoU 53.2, 125M parameters, 1182 GFLOPs.
    python tools/train.py configs/ravlt/upernet_ravlt-l_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_ravlt-s.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(
    backbone=dict(arch='large', drop_path_rate=0.55),
    decode_head=dict(in_channels=[96, 192, 448, 640]),
    auxiliary_head=dict(in_channels=448),
)
optim_wrapper = dict(type='AmpOptimWrapper')
