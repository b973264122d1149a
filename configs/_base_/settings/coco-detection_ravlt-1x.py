"""12 epochs as RAVLT's RetinaNet trains: AdamW with weight decay 1e-4, 500 iterations of warm-up, mixed precision.

In its authors' code, all parameters decay, and the loss is scaled by 512.
"""

_base_ = './coco-detection_1x.py'
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(weight_decay=1e-4))
