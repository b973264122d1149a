_base_ = './coco-instance_3x.py'
# as Swin and VMamba train detectors
optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1000)
