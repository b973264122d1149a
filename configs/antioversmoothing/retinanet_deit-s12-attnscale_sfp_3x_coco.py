"""RetinaNet with DeiT-S12 + AttnScale on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/antioversmoothing/retinanet_deit-s12-attnscale_sfp_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_deit-s12.py', '../_base_/settings/coco-detection_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/attnscale_small_12.pth'
model = dict(backbone=dict(attn_scale=True))
