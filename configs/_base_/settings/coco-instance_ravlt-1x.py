"""12 epochs as RAVLT's Mask R-CNN trains: AdamW with weight decay 0.05, 500 iterations of warm-up, mixed precision.

In its authors' code, the norms of the stem and LayerScale's factors decay, too, and the loss is scaled by 512.
"""

_base_ = './coco-instance_1x.py'
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(weight_decay=0.05))
