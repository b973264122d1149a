_base_ = ['../datasets/ade20k_mask2former.py', '../schedules/ade20k_1x_mask2former.py', '../seg_runtime.py']
default_hooks = dict(checkpoint=dict(interval=5000))
# the head is made of MMDetection's parts
custom_imports = dict(imports='mmdet.models', allow_failed_imports=False)
