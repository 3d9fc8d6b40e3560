#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ends without a plan, as a test does that was cut short. Must count a failure.
echo "ok 1 - first"
