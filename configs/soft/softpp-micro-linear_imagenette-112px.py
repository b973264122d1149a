"""Linear SOFT++-Micro on Imagenette, 12 epochs at 112 x 112.
python tools/train.py configs/soft/softpp-micro-linear_imagenette-112px.py
"""

_base_ = ['../_base_/models/classifier_softpp-micro-linear.py', '../_base_/settings/imagenette-112_12e.py']

model = dict(backbone=dict(img_size=112), head=dict(num_classes=10), train_cfg=dict(_delete_=True))
