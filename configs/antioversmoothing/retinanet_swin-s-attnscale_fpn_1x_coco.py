"""RetinaNet with Swin-S + AttnScale on COCO, 1x (12 epochs).
python tools/train.py configs/antioversmoothing/retinanet_swin-s-attnscale_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-s.py', '../_base_/settings/coco-detection_swin-1x.py']
model = dict(backbone=dict(attn_scale=True))
