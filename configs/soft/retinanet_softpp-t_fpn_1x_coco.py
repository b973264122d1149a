"""RetinaNet with SOFT++-Tiny on COCO, 1x (12 epochs). Paper: box AP 41.9, 23M parameters.
python tools/train.py configs/soft/retinanet_softpp-t_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-t.py', '../_base_/settings/coco-detection_1x.py']
