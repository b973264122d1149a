"""RetinaNet with Swin-S + AttnScale on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/antioversmoothing/retinanet_swin-s-attnscale_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/retinanet_swin-s-attnscale.py', '../_base_/settings/cityscapes-detection_swin-1x.py']
model = dict(bbox_head=dict(num_classes=8))
