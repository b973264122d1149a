"""RetinaNet with SOFT++-Tiny on COCO, 1x (12 epochs), with the inverse of softpp-t-ridge_in1k, where WEIGHTS are from.
python tools/train.py configs/soft/retinanet_softpp-t-ridge_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-t.py', '../_base_/settings/coco-detection_1x.py']
model = dict(backbone=dict(solver='cholesky', ridge=0.001))
