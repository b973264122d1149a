"""EfficientViT's training of series L: lr 1.2e-3, stronger RandAugment, random erasing of a fifth of the images, and
mixed precision; the rest as in in1k-224_efficientvit-320e.py. The configs have the self-distillation.
"""

_base_ = './in1k-224_efficientvit-320e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=2, magnitude_level=5)
train_pipeline.insert(
    4, dict(type='RandomErasing', erase_prob=0.2, mode='rand', min_area_ratio=0.02, max_area_ratio=1 / 3)
)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(lr=1.2e-3))
