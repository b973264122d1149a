"""RetinaNet with SOFT-Huge (normalized) on COCO, 1x (12 epochs).
python tools/train.py configs/soft/retinanet_soft-h_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_1x.py']
model = dict(backbone=dict(arch='huge'), neck=dict(in_channels=[128, 352, 512]))
