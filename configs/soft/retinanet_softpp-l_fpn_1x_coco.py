"""RetinaNet with SOFT++-Large on COCO, 1x (12 epochs). Paper: box AP 47.0, 98M parameters.
python tools/train.py configs/soft/retinanet_softpp-l_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-l.py', '../_base_/settings/coco-detection_1x.py']
