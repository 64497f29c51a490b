"""Runs until it is told to stop."""

import time

import starforge

for step in range(600):
    starforge.progress(step, 600)
    time.sleep(1)
