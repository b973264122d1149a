"""The same training at 288 x 288: see in1k-224_efficientvit-b3-320e.py."""

_base_ = './in1k-224_efficientvit-b3-320e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale=288)
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=288)
test_pipeline[2].update(crop_size=288)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
