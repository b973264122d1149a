_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_300e_swin.py', '../cls_runtime.py']
