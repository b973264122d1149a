"""RetinaNet with SOFT++-Small on COCO, 1x (12 epochs). Paper: box AP 43.7, 38M parameters.
python tools/train.py configs/soft/retinanet_softpp-s_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s.py', '../_base_/settings/coco-detection_1x.py']
