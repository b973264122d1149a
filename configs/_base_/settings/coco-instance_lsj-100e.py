_base_ = ['../datasets/coco_instance_lsj.py', '../schedules/coco_100e.py', '../det_runtime.py']
