"""A campaign: a set under load, hurt at random by a schedule that a seed decides, and judged from its log.

``schedule``   which fault comes when
``load``       measures how much the set takes, and sends half of it
``takeovers``  how long partitions are led by nobody
``places``     what can be hurt: a program, a disk, a network
``embedded``   a set with its own broker, in a network of its own
``cluster``    a set on three machines with three brokers
``campaign``   runs it all, and tells
"""
