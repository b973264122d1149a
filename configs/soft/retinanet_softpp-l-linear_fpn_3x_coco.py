"""RetinaNet with linear SOFT++-Large on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/soft/retinanet_softpp-l-linear_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-l-linear.py', '../_base_/settings/coco-detection_3x.py']
