"""36 epochs as RAVLT's Mask R-CNN and Cascade Mask R-CNN train: on MLLA's images, in mixed precision.

What coco-instance_ravlt-1x.py says of decay and loss is so here, too, but that no norm of Cascade Mask R-CNN decays.
"""

_base_ = './coco-instance_mlla-ms-crop-3x.py'
optim_wrapper = dict(type='AmpOptimWrapper')
