_base_ = ['mmseg::_base_/datasets/ade20k.py', '../schedules/ade20k_1x.py', '../seg_runtime.py']
# MMSegmentation's data loads four images on a GPU, for four GPUs
train_dataloader = dict(batch_size=2)
# a checkpoint wherever there is a validation
default_hooks = dict(checkpoint=dict(interval=16000))
