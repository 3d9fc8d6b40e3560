// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulated disk: messages, counters as text, injected faults, and the control
 * of power. Messages run one at a time under pcsim_mutex, which also keeps the
 * members of a power domain from going away; they may sleep.
 */
#include "pcsim.h"

#include <linux/math64.h>
#include <linux/slab.h>

static const char * const op_names[PCSIM_NR_OPS] = { "read", "write", "flush", "discard" };

unsigned int pcsim_emit_stats(struct pcsim *sim, char *result, unsigned int maxlen, char sep)
{
	struct pcsim_stats st;
	unsigned int sz = 0;

	pcsim_stats_sum(sim, &st);
	DMEMIT("state %s%c", pcsim_is_dead(sim) ? "dead" : "alive", sep);
	DMEMIT("reads %llu%c", st.ops[PCSIM_READ], sep);
	DMEMIT("writes %llu%c", st.ops[PCSIM_WRITE], sep);
	DMEMIT("flushes %llu%c", st.ops[PCSIM_FLUSH], sep);
	DMEMIT("discards %llu%c", st.ops[PCSIM_DISCARD], sep);
	DMEMIT("fua %llu%c", st.fua, sep);
	DMEMIT("read_bytes %llu%c", st.read_bytes, sep);
	DMEMIT("write_bytes %llu%c", st.write_bytes, sep);
	DMEMIT("discard_bytes %llu%c", st.discard_bytes, sep);
	DMEMIT("seeks %llu%c", st.seeks, sep);
	DMEMIT("seek_us %llu%c", div_u64(st.seek_ns, NSEC_PER_USEC), sep);
	DMEMIT("busy_us %llu%c", div_u64(st.busy_ns, NSEC_PER_USEC), sep);
	DMEMIT("active_us %llu%c", div_u64(st.active_ns, NSEC_PER_USEC), sep);
	DMEMIT("errors %llu%c", st.errors, sep);
	DMEMIT("inflight %d%c", atomic_read(&sim->inflight), sep);
	DMEMIT("volatile_bytes %llu%c", READ_ONCE(sim->log_bytes), sep);
	DMEMIT("cut_volatile %llu%c", sim->cut_volatile, sep);
	DMEMIT("cut_lost %llu", sim->cut_lost);
	return sz;
}

static void stats_reset(struct pcsim *sim)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(sim->stats, cpu), 0, sizeof(struct pcsim_stats));
}

static bool fault_matches(const struct pcsim_fault *fault, const struct pcsim_req *req)
{
	sector_t end = req->sector + (req->bytes >> SECTOR_SHIFT);

	if (fault->op != req->op)
		return false;
	return req->op == PCSIM_FLUSH || (req->sector < fault->end && end > fault->start);
}

static void fault_remove(struct pcsim *sim, struct pcsim_fault *fault)
{
	list_del(&fault->link);
	WRITE_ONCE(sim->nr_faults, sim->nr_faults - 1);
	kfree(fault);
}

/* Any context; uses up one count of the first rule that matches. */
bool pcsim_fault_hit(struct pcsim *sim, struct pcsim_req *req)
{
	struct pcsim_fault *fault;
	unsigned long flags;
	bool hit = false;

	spin_lock_irqsave(&sim->lock, flags);
	list_for_each_entry(fault, &sim->faults, link) {
		hit = fault_matches(fault, req);
		if (hit)
			break;
	}
	if (hit && fault->left && !--fault->left)
		fault_remove(sim, fault);
	spin_unlock_irqrestore(&sim->lock, flags);
	return hit;
}

void pcsim_faults_clear(struct pcsim *sim)
{
	struct pcsim_fault *fault, *next;

	spin_lock_irq(&sim->lock);
	list_for_each_entry_safe(fault, next, &sim->faults, link)
		fault_remove(sim, fault);
	spin_unlock_irq(&sim->lock);
}

/* fail off | fail read|write|flush|discard START LEN COUNT */
static int message_fail(struct pcsim *sim, unsigned int argc, char **argv)
{
	struct pcsim_fault *fault;
	u64 start, len, count;
	int op;

	if (argc == 2 && !strcmp(argv[1], "off")) {
		pcsim_faults_clear(sim);
		return 0;
	}
	if (argc != 5)
		return -EINVAL;
	op = match_string(op_names, PCSIM_NR_OPS, argv[1]);
	if (op < 0 || kstrtou64(argv[2], 10, &start) || kstrtou64(argv[3], 10, &len) ||
	    kstrtou64(argv[4], 10, &count))
		return -EINVAL;
	if (sim->nr_faults >= PCSIM_MAX_FAULTS)
		return -ENOSPC;

	fault = kzalloc(sizeof(*fault), GFP_KERNEL);
	if (!fault)
		return -ENOMEM;
	fault->op = op;
	fault->start = start;
	fault->end = len && start + len > start ? start + len : U64_MAX;
	fault->left = count;
	spin_lock_irq(&sim->lock);
	list_add_tail(&fault->link, &sim->faults);
	WRITE_ONCE(sim->nr_faults, sim->nr_faults + 1);
	spin_unlock_irq(&sim->lock);
	return 0;
}

static int message_hold(struct pcsim *sim, unsigned int argc, char **argv)
{
	unsigned int i, mask = argc == 1 ? BIT(PCSIM_NR_OPS) - 1 : 0;

	for (i = 1; i < argc; i++) {
		int op = match_string(op_names, PCSIM_NR_OPS, argv[i]);

		if (op < 0)
			return -EINVAL;
		mask |= BIT(op);
	}
	pcsim_model_hold(sim, mask);
	return 0;
}

/* After this nothing reads or writes the backing device or the undo log. */
static void drain(struct pcsim *sim)
{
	smp_mb();	/* "dead" before inflight; pairs with the one in pcsim_map() */
	pcsim_model_abort(sim);
	wait_event(sim->idle_wait, !atomic_read(&sim->inflight));
	/* The last request was finished under the lock, or will do no more than end its bio. */
	flush_work(&sim->work);
}

static void power_off(struct pcsim_power *power)
{
	struct pcsim *sim;

	lockdep_assert_held(&pcsim_mutex);

	WRITE_ONCE(power->dead, true);
	list_for_each_entry(sim, &power->members, member)
		drain(sim);
}

static int message_cut(struct pcsim *sim, const char *seed_arg, const char *mode)
{
	struct pcsim_power *power = sim->power;
	struct pcsim *member;
	u64 seed;
	int r = 0;

	if (kstrtou64(seed_arg, 10, &seed) || (mode && !pcsim_wcache_mode_valid(mode)))
		return -EINVAL;
	power_off(power);
	list_for_each_entry(member, &power->members, member) {
		int err = pcsim_wcache_cut(member, seed, mode);

		if (err)
			r = err;
	}
	return r;
}

static int message_set(struct pcsim *sim, const char *key, const char *value)
{
	int r = pcsim_config_set(&sim->cfg, key, value, true);

	return r == -ENOENT || r == -ERANGE ? -EINVAL : r;
}

static int do_message(struct pcsim *sim, unsigned int argc, char **argv, char *result,
		      unsigned int maxlen)
{
	if (!strcmp(argv[0], "fail"))
		return message_fail(sim, argc, argv);
	if (!strcmp(argv[0], "hold"))
		return message_hold(sim, argc, argv);
	if (!strcmp(argv[0], "cut") && (argc == 2 || argc == 3))
		return message_cut(sim, argv[1], argc == 3 ? argv[2] : NULL);
	if (!strcmp(argv[0], "set") && argc == 3)
		return message_set(sim, argv[1], argv[2]);
	if (argc != 1)
		return -EINVAL;

	if (!strcmp(argv[0], "stats")) {
		pcsim_emit_stats(sim, result, maxlen, '\n');
		return 1;
	}
	if (!strcmp(argv[0], "reset"))
		stats_reset(sim);
	else if (!strcmp(argv[0], "kill"))
		power_off(sim->power);
	else if (!strcmp(argv[0], "revive"))
		WRITE_ONCE(sim->power->dead, false);
	else if (!strcmp(argv[0], "release"))
		pcsim_model_release(sim);
	else if (!strcmp(argv[0], "sync"))
		pcsim_wcache_sync(sim);
	else
		return -EINVAL;
	return 0;
}

int pcsim_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
		  unsigned int maxlen)
{
	struct pcsim *sim = ti->private;
	int r;

	mutex_lock(&pcsim_mutex);
	r = do_message(sim, argc, argv, result, maxlen);
	mutex_unlock(&pcsim_mutex);
	if (r == -EINVAL)
		DMERR("message \"%s\": unknown, or wrong arguments", argv[0]);
	return r;
}
