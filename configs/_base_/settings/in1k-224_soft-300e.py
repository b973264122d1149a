_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_300e_soft.py', '../cls_runtime.py']
