"""RetinaNet with SOFT++-Small on COCO, 3x (36 epochs, multi-scale). Paper: 38M parameters.
python tools/train.py configs/soft/retinanet_softpp-s_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s.py', '../_base_/settings/coco-detection_3x.py']
