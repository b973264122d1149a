_base_ = './cityscapes-detection_1x.py'
# as Swin and VMamba train detectors
optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
