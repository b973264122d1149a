"""12 epochs as H-ViT^3 trains detectors: on MLLA's images, in mixed precision, with 1,000 iterations of warm-up and, on
each GPU, four images; the learning rate is 2e-4.
"""

_base_ = './coco-instance_mlla-ms-crop-1x.py'
train_dataloader = dict(batch_size=4)
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(lr=2e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1000)
auto_scale_lr = dict(base_batch_size=32)
