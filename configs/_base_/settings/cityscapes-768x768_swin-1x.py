"""UperNet on Cityscapes, 40k iterations, batch 8 (4 GPUs x 2).

Source: the SOFT++ paper (40k at 768 x 768); the batch is MMSegmentation's.
"""

_base_ = ['mmseg::_base_/datasets/cityscapes_768x768.py', '../schedules/ade20k_1x.py', '../seg_runtime.py']
train_cfg = dict(max_iters=40000, val_interval=4000)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=40000)
auto_scale_lr = dict(base_batch_size=8)
# what the data says of the model, for the leaf
cityscapes_model = dict(
    data_preprocessor=dict(size=(768, 768)),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(num_classes=19),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)
