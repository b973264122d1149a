"""RetinaNet with linear SOFT++-Micro on COCO, 1x (12 epochs).
python tools/train.py configs/soft/retinanet_softpp-micro-linear_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-micro-linear.py', '../_base_/settings/coco-detection_1x.py']

# ten times that of the larger models, which suits small sets of photos better
optim_wrapper = dict(optimizer=dict(lr=1e-3))
