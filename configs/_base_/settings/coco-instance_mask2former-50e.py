_base_ = ['../datasets/coco_instance_mask2former.py', '../schedules/coco_50e_mask2former.py', '../det_runtime.py']
default_hooks = dict(checkpoint=dict(by_epoch=False, interval=5000, save_last=True))
log_processor = dict(type='LogProcessor', window_size=50, by_epoch=False)
