"""UperNet with DeiT-S12 + AttnScale on Cityscapes, 3x (120k iterations).
python tools/train.py configs/antioversmoothing/upernet_deit-s12-attnscale_3x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_deit-s12.py', '../_base_/settings/cityscapes-768x768_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/attnscale_small_12.pth'
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
