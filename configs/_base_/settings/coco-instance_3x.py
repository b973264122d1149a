_base_ = ['../datasets/coco_instance_480-800.py', '../schedules/coco_3x.py', '../det_runtime.py']
