"""RetinaNet with Swin-S + AttnScale on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/antioversmoothing/retinanet_swin-s-attnscale_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-s.py', '../_base_/settings/coco-detection_swin-3x.py']
model = dict(backbone=dict(attn_scale=True))
