"""36 epochs as VSSD trains detectors: as Swin does, in single precision."""

_base_ = './coco-instance_swin-ms-crop-3x.py'
optim_wrapper = dict(type='OptimWrapper')
