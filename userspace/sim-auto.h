/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policy auto for the model: what the kernel's host does around the policy at work
 * (host.c), with the same choice (auto.h) and the same exchange (swap.h), as a policy.
 */
#ifndef PC_SIM_AUTO_H
#define PC_SIM_AUTO_H

#include "auto.h"
#include "policy.h"

extern const struct pc_policy_type pc_sim_auto;

/* Of an instance of pc_sim_auto: its shadows, and the policy of a number. */
const struct pc_auto *pc_sim_auto_shadows(struct pc_policy *p);
const struct pc_policy_type *pc_sim_auto_type(struct pc_policy *p, unsigned int index);

#endif
