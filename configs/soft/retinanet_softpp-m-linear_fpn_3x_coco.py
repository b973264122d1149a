"""RetinaNet with linear SOFT++-Medium on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/soft/retinanet_softpp-m-linear_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s-linear.py', '../_base_/settings/coco-detection_3x.py']
model = dict(backbone=dict(arch='medium'))
