"""ATSS with SOFT-Small (normalized) on COCO, 3x (36 epochs, multi-scale).
arXiv preprint of SOFT++: box AP 46.7, 32M parameters.
The paper does not print the schedule of these rows. Those of ResNet-50 beside them are known from 3x.
    python tools/train.py configs/soft/atss_soft-s_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/atss_soft-s.py', '../_base_/settings/coco-detection_3x.py']
