_base_ = ['../datasets/coco_instance_ms-crop.py', '../schedules/coco_3x.py', '../det_runtime.py']
# as Swin and VMamba train detectors for 36 epochs, in mixed precision
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(weight_decay=0.05))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1000)
