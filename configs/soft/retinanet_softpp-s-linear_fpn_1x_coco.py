"""RetinaNet with linear SOFT++-Small on COCO, 1x (12 epochs).
python tools/train.py configs/soft/retinanet_softpp-s-linear_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s-linear.py', '../_base_/settings/coco-detection_1x.py']
